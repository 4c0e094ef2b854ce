"""Studies: does augmentation help, and which one?

`plan` defines the keys of plans and reads them, `data` prepares the files of the runs, `schedule` lists the runs,
`runs` executes one of them, `records` stores the results, and `engine` executes all. `auto` chooses a recipe for a
corpus on the same engine: `choice` has the recipes with their priors and the rule, `auto_files` what is written.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
