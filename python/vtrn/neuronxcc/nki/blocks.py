"""Tensors whose blocks are tiles of their own: with addresses, or larger than the memory. Block dimensions take numbers."""

import itertools

from vtrn import _vtrn
from vtrn.neuronxcc.nki.tile import Tensor, fail


def _is_all(item):
    return item is Ellipsis or (isinstance(item, slice) and item == slice(None))


class Blocks(Tensor):
    """Block dimensions, then a tile. ``make(index)`` declares a block's tile when it is first used."""

    __slots__ = ("make", "prefix", "sizes", "tiles")

    def __init__(self, sizes, tile_shape, make, tiles=None, prefix=()):
        self.sizes, self.make, self.prefix = tuple(sizes), make, tuple(prefix)
        self.tiles = {} if tiles is None else tiles
        first = self._tile((*self.prefix, *(0,) * (len(self.sizes) - len(self.prefix))))
        super().__init__(first.data, len(self.sizes) - len(self.prefix))
        self.said = (*self.sizes[len(self.prefix) :], *tile_shape)

    def _tile(self, index):
        made = self.tiles.get(index)
        if made is None:
            made = self.tiles[index] = self.make(index)
        return made

    def make_all(self):
        """Declares every tile, in order."""
        for index in itertools.product(*map(range, self.sizes)):
            self._tile(index)
        return self

    def __getitem__(self, key):
        key = key if isinstance(key, tuple) else (key,)
        count = 0
        while count < min(len(key), self.par) and hasattr(key[count], "__index__"):
            count += 1
        index, rest = [int(i) for i in key[:count]], key[count:]
        if count < self.par:
            if not all(_is_all(item) for item in rest):
                self._fail(f"its {self.par} block dimensions take numbers, not {key}")
            return self if not index else Blocks(self.sizes, self.said[self.par :], self.make, self.tiles, self._checked(index))
        tile = self._tile(self._checked(index))
        return tile[rest] if rest else tile

    def _checked(self, index):
        sizes = self.sizes[len(self.prefix) :]
        index = [i + n if i < 0 else i for i, n in zip(index, sizes, strict=False)]
        if any(not 0 <= i < n for i, n in zip(index, sizes, strict=False)):
            self._fail(f"block {tuple(index)} is outside")
        return (*self.prefix, *index)

    def _fail(self, text):
        return fail("index", f"a tensor of {self.said} in blocks of their own: {text}", _vtrn.NkiIndexError)

    def reshape(self, shape, *more):
        return self._fail("it cannot be reshaped; reshape a block")
