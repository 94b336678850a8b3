"""Short ways to run the recipe of Mend on small data, for tests that look at its parts."""

from viewmend.core.common.rows import RowsInMemory
from viewmend.core.mend.geometry import GeometrySettings, build_geometry
from viewmend.core.mend.samples import samples_of
from viewmend.core.mend.stage import MendSettings

MEMORY = RowsInMemory()


def seen_rows(views, observed):
    """The rows that every view has."""
    return [X_v[seen] for X_v, seen in zip(views, observed.T, strict=True)]


def geometry_of(views, observed, **settings):
    """The geometry of views with a row per sample."""
    return build_geometry(seen_rows(views, observed), observed, GeometrySettings(**settings))


def in_memory(geometry, n_classes, settings=None):
    """The samples of a geometry, all of them in the graph."""
    settings = settings or MendSettings()
    return samples_of(MEMORY, geometry, n_classes, settings.neighbours)


def dense(parts):
    """A sum of graphs as an array."""
    return sum(scale * graph.to_scipy().toarray() for scale, graph in parts)


def dense_graphs(graphs):
    """Every graph of a union as an array, (n_graphs, n_samples, n_samples)."""
    n_graphs = len(graphs.edges)
    one_hot = [[float(g == h) for h in range(n_graphs)] for g in range(n_graphs)]
    return [dense([(1.0, graphs.weighted(only))]) for only in one_hot]
