"""Save fitted models to a file and load them again, without pickle.

A model file is a zip archive of plain members; arrays are compressed if that saves space:

``model.json``
    The name of the format, its schema version, the versions of the libraries that wrote it, the
    class, its parameters, the fitted attributes as a tree that names arrays, and dtype and shape
    of every array.
``arrays/a0.npy``, ``arrays/a1.npy``, ...
    The arrays, as ``numpy.save`` writes them; ``numpy.load`` opens the whole file.

The comment of the archive, which ends the file, is a SHA-256 digest of every byte before it.

Loading runs no code from the file: classes, data classes and functions come from fixed tables, and
any other name in a file is an error.
"""

from viewmend.persistence.files import load, save
from viewmend.storage.errors import ModelFileError

__all__ = ["ModelFileError", "load", "save"]
