# SPDX-License-Identifier: Apache-2.0
"""qcow2.py IMAGE RAW: the disk that an image of qemu has, as a plain file. Images on others, encrypted ones and those with
snapshots are not for it."""
import struct
import sys
import zlib

COMPRESSED = 1 << 62
ADDRESS = (1 << 56) - (1 << 9)  # of an uncompressed cluster, and of a table


def read_table(image, at, n):
    image.seek(at)
    return struct.unpack(f">{n}Q", image.read(8 * n))


def cluster(image, entry, bits):
    if not entry & COMPRESSED:
        image.seek(entry & ADDRESS)
        return image.read(1 << bits)
    shift = 62 - (bits - 8)  # where the number of further sectors begins
    at, sectors = entry & ((1 << shift) - 1), (entry >> shift) & ((1 << (bits - 8)) - 1)
    image.seek(at)
    return zlib.decompressobj(-12).decompress(image.read(512 * (sectors + 1) - at % 512))


def main():
    with open(sys.argv[1], "rb") as image, open(sys.argv[2], "wb") as raw:
        magic, version, backing, _, bits, size, encrypted, n, table = struct.unpack(">4sIQIIQIIQ", image.read(48))
        if magic != b"QFI\xfb" or version not in (2, 3) or backing or encrypted:
            sys.exit(f"{sys.argv[1]}: no plain qcow2 image")
        for i, second in enumerate(read_table(image, table, n)):
            if not second & ADDRESS:
                continue
            for j, entry in enumerate(read_table(image, second & ADDRESS, 1 << (bits - 3))):
                # The lowest bit says of a plain cluster that it is all zeros.
                if entry & COMPRESSED or entry & ADDRESS and not entry & 1:
                    raw.seek(((i << (bits - 3)) + j) << bits)
                    raw.write(cluster(image, entry, bits))
        raw.truncate(size)


main()
