"""The catalogue: facts about a source's tables, columns and relations, each with a source and a state.

`values.py` holds the facts, `text.py` reads their text form (`catalog/SOURCE.yaml`). It imports nothing of ours but the
names at the top of the package.
"""

from learngraph_kernel.data.catalogue.text import CatalogueError, load_catalogue, parse_catalogue
from learngraph_kernel.data.catalogue.values import Catalogue, ColumnFact, Relation, TableFact

__all__ = ["Catalogue", "CatalogueError", "ColumnFact", "Relation", "TableFact", "load_catalogue", "parse_catalogue"]
