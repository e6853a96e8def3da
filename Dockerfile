# A Debian 12 with Swift, in which Nigh is built, tested and played.
#
#   docker build --tag nigh .
#   docker run --interactive --tty --rm nigh                          plays Four in a Row: `make play`
#   docker run --interactive --tty --rm --privileged nigh make test   the tests make networks of their own
ARG SWIFT=6.3.1
FROM swift:${SWIFT}-bookworm AS tools
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates git make \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /nigh
# Only what says which packages are needed, so that a change of the sources does not install them again.
COPY .ci/setup .ci/packages .ci/packages-docs .ci/packages-test .ci/
RUN for list in packages packages-docs packages-test; do .ci/setup .ci/$list || exit 1; done \
    && rm -rf /var/lib/apt/lists/*

FROM tools
COPY . .
CMD ["make", "play"]
