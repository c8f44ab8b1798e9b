"""Reading numbers in English and Chinese prose. Pure text in, `Numeral` values out; start reading at `numeral`."""
