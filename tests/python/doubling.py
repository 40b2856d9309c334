class Doubling:
    """A compressor as a user would write it: sees one gradient at a time, in its shape."""

    @staticmethod
    def compress(tensor):
        return tensor.flatten() * 2, tensor.shape

    @staticmethod
    def decompress(tensor, ctx):
        return tensor.view(ctx) / 2
