"""Speed as ratios against peers in the same run; ``make bench`` prints the table.

How it is measured: the two sides alternate after a warm-up and the ratio is the median of the ratios of
the pairs, so that a machine that drifts slows both. Files are created on a fresh file system (a
loop-mounted ext4 as root, else tmpfs) and nothing is deleted between runs, because deleting large trees
slows file creation down for minutes on some disks. A ratio is about this machine and this run; none is
asserted by a test.
"""
