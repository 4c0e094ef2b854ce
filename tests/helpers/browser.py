"""HTML pages of entaug, opened in a browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["OpenedFile", "OpenedPage", "data_of"]


class OpenedPage:
    """A page in a browser of its own, which must not complain or ask for anything."""

    def __init__(self, browser: Any, file: Path, **options: Any) -> None:
        self.file = file
        self.context = browser.new_context(
            accept_downloads=True, **{"viewport": {"width": 1280, "height": 900}, **options}
        )
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(file.as_uri())

    def close(self) -> None:
        asked = [url for url in self.asked if not url.startswith(("data:", "blob:"))]
        self.context.close()
        assert self.complaints == []
        assert set(asked) <= {self.file.as_uri()}


class OpenedFile(OpenedPage):
    """A page of sentences."""

    def __init__(self, browser: Any, file: Path, **options: Any) -> None:
        super().__init__(browser, file, **options)
        self.page.wait_for_selector("#feed article, #feed .nothing")

    def count(self) -> str:
        return str(self.page.inner_text("#count"))

    def decided(self) -> str:
        return str(self.page.inner_text("#decided"))

    def current(self) -> int:
        return int(self.page.get_attribute("article.current", "data-pair"))

    def choose(self, **filters: str) -> None:
        for name, label in filters.items():
            self.page.select_option(f"#{name}", label=label)


def data_of(file: Path) -> dict[str, Any]:
    """The data of a page."""
    text = file.read_text(encoding="utf-8")
    start = text.index(">", text.index('<script type="application/json"')) + 1
    found: dict[str, Any] = json.loads(text[start : text.index("</script>", start)])
    return found
