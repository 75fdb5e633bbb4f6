# The pipeline in a container, with the exact versions of requirements.lock:
#
#     docker build --tag dpmc .
#     docker run --name smoke dpmc smoke                  # any arguments of workflow/run.py
#     docker cp smoke:/dpmc/figures/smoke .               # likewise results, data
#     docker start --attach smoke                         # resumes a run that was stopped
#
# .dockerignore says what is copied.
FROM python:3.12-slim

WORKDIR /dpmc

# As the Makefile does it: wheels only, but for one package that is pure Python and has none.
COPY requirements.lock ./
RUN python -m pip install --no-cache-dir --disable-pip-version-check --require-hashes \
    --only-binary :all: --no-binary connection-pool --requirement requirements.lock

COPY . .
RUN python -m pip install --no-cache-dir --disable-pip-version-check --no-deps \
    --no-build-isolation --editable .

ENTRYPOINT ["python", "workflow/run.py"]
CMD ["smoke"]
