"""Experiments: does augmentation help?

`plan` defines the keys of plans, `reading` reads them, `data` prepares the files of the runs, `schedule` lists the
runs, `runs` executes one of them, `records` stores the results, `runner` executes all, and `smoke` tries a plan on a
few sentences.
"""
