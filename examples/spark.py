"""A method in Spark, fitted in each task: ``python spark.py`` in a folder with ``train.jsonl``."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from pyspark import SparkFiles
from pyspark.sql import SparkSession

import entaug


def augmented(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Yield the new sentences of each batch, as lines of JSON."""
    augmenter = entaug.create_augmenter("mr").fit(entaug.read(SparkFiles.get("train.jsonl")))  # once for each task
    for batch in batches:
        with tempfile.TemporaryDirectory() as folder:
            gold, new = Path(folder, "gold.jsonl"), Path(folder, "new.jsonl")
            gold.write_text("\n".join(batch["value"]), "utf-8")
            entaug.write(augmenter.augment(entaug.read(gold)), new)
            lines = new.read_text("utf-8").split("\n")[:-1]
        yield pd.DataFrame({"value": lines}, dtype=object)


if __name__ == "__main__":
    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.addFile("train.jsonl")
    spark.read.text("train.jsonl").mapInPandas(augmented, "value string").write.text("new")
