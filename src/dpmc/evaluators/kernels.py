"""Fill numba's cache with the compiled kernels: `python -m dpmc.evaluators.kernels`."""


def main() -> None:
    """Compile every kernel that is not in the cache; nothing is kept there as yet."""


if __name__ == "__main__":
    main()
