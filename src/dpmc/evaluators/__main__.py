"""Fill numba's cache, so that many processes do not compile at once: `python -m dpmc.evaluators`."""

from dpmc.metrics import mmd


def main() -> None:
    """Compile what every evaluation needs; samplers compile for themselves as yet."""
    mmd.warm()


if __name__ == "__main__":
    main()
