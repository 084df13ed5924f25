"""What the runtime costs, as ratios to a floor written by hand and to a peer, all measured in one run.

It imports no Django at this level: the floor's own processes are started from here too.
"""
