"""``entaug predict``: label text with a trained tagger."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from entaug.commands import options, output
from entaug.commands.command import Command

__all__ = ["COMMAND"]


def _add_options(parser: argparse.ArgumentParser, _argv: Sequence[str]) -> None:
    parser.add_argument(
        "tagger",
        help="the folder of a trained tagger, or a model of another library: spacy:NAME, hf:NAME or gliner:NAME",
    )
    parser.add_argument(
        "text",
        nargs="+",
        metavar="TEXT",
        help="plain text, a folder of .txt files, one token per line, JSON lines with text or tokens, a labelled file "
        "in any format (its labels are ignored), or - for standard input",
    )
    parser.set_defaults(several_inputs="text")
    options.add_output_options(parser)
    parser.add_argument(
        "--train",
        metavar="FILE",
        help="your training file, which is not trained on: text is tokenised in its style (default: by the rules of "
        "spaCy), and the labels of spacy:, hf: and gliner: models are mapped to its labels",
    )
    parser.add_argument(
        "--probabilities",
        action="store_true",
        help="also write the probabilities of tags (soft labels), for example to JSON lines or Parquet",
    )
    parser.add_argument(
        "--language",
        metavar="CODE",
        help="language of the text, such as en or de, by whose rules it is split and tokenised (default: that of the "
        "training file or of the text)",
    )
    options.add_json_option(parser)
    options.add_write_options(parser)
    options.add_compute_options(parser)


def _run(args: argparse.Namespace) -> int:
    from entaug.commands.work.predict import predict_file
    from entaug.files.streams import is_stdout

    with output.show_progress() as progress:
        summary = predict_file(
            args.tagger,
            args.text,
            args.output,
            train=args.train,
            probabilities=args.probabilities,
            language=args.language,
            force=args.force,
            **options.write_options(args),
            progress=progress,
        )
    if args.json:
        output.print_json(summary, to_stderr=is_stdout(args.output))
        return output.ExitCode.OK
    for note in summary.notes:
        output.print_message(f"note: {note}")
    output.print_message(
        f"{output.quantity(summary.sentences, 'sentence')}, {output.quantity(summary.tokens, 'token')}, "
        f"{output.quantity(summary.mentions.total(), 'mention')}, mean confidence {summary.confidence:.2f} "
        f"({summary.seconds:.1f} s)"
    )
    output.print_label_counts(summary.mentions)
    output.print_message(f"wrote {output.shown_path(summary.output)}: {summary.to_format}")
    return output.ExitCode.OK


COMMAND = Command(
    "label text with a trained tagger",
    _add_options,
    _run,
    description="Label text: write every sentence, in order, with the predicted mentions and a confidence.\n"
    "For example: entaug predict result/tagger news.txt -o labelled.jsonl",
)
