"""Tables with a heading: CSV, TSV and Excel workbooks."""
