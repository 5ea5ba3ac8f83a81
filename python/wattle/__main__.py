"""``python -m wattle`` is the command ``wattle``."""

from wattle._command import main

if __name__ == "__main__":
    main()
