"""Evidence: numerals, citations, report documents, metric cards, issuance, audit. Pure: values in, values out.

Start reading at `values`. Imports only the standard library, `canonical`, `errors` and small parsers; opens no file it
was not handed."""
