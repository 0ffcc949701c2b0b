# harness in a container: `docker build -t harness .`, then `docker run --rm -it -v "$PWD:/work" -e OPENAI_API_KEY harness`.
# Its walls need a seccomp profile that allows landlock_*, and for namespaces of their own also clone, unshare and mount.
ARG PYTHON=3.11

FROM python:${PYTHON}-slim AS build
WORKDIR /source
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY docs docs
COPY policies policies
COPY harness harness
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheel .

FROM python:${PYTHON}-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap git tini \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 harness \
    && install --directory --owner harness /work
COPY --from=build /wheel /wheel
RUN pip install --no-cache-dir /wheel/*.whl
USER harness
WORKDIR /work
ENTRYPOINT ["tini", "--", "harness"]
