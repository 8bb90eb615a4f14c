"""The last room: a plan of a sandbox, and what carries it out with bubblewrap.

    plan       what a sandbox is made of, as data
    skeleton   the minimal root that every sandbox of a store shares
    argv       a plan as bwrap's arguments
    seccomp    the compiled system call filter
    script     a plan as a shell script that needs no Python
    bwrap      which bwrap works on this machine
    limits     memory, processor, process and time limits
    launch     carries a plan out
    doctor     what of all this works on this machine

A leaf: it knows nothing of layers, sessions or the store.
"""
