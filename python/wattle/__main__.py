"""``python -m wattle`` is the command ``wattle``."""

from wattle._command import main

main()
