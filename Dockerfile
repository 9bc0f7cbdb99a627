# The service without a database: it wants PREVAIL_DATABASE_URL. `serve` refuses a schema that is not its own, so
# `migrate` runs first, as a step of its own (see docker-compose.yml).

# With its digest, once `python -m scripts.digests` has asked the registry for it.
ARG BASE=python:3.13-slim

# First stage: the pinned packages, in an environment that has no installer of its own.
FROM ${BASE} AS build
COPY requirements/base.txt /tmp/requirements.txt
RUN --mount=type=cache,target=/root/.cache/pip \
    python -m venv --without-pip /opt/venv \
    && python -m pip --python /opt/venv/bin/python install --disable-pip-version-check --require-hashes -r /tmp/requirements.txt \
    && find /opt/venv/lib/python3*/site-packages/scipy /opt/venv/lib/python3*/site-packages/numpy \
        -type d -name tests -prune -exec rm -rf {} +

# Last stage: the packages and the code, owned by root, run by nobody in particular; the base image's installer goes.
FROM ${BASE}
RUN rm -rf /usr/local/bin/pip* /usr/local/lib/python3*/ensurepip /usr/local/lib/python3*/site-packages/pip*
COPY --from=build /opt/venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PREVAIL_HOST=0.0.0.0
WORKDIR /srv/prevail
COPY alembic.ini ./
COPY alembic ./alembic
COPY app ./app
# Nobody may write here later, so what Python and the templates of pages keep compiled is made now.
RUN python -m compileall -q app alembic \
    && python -c "from app.api.report import templates as of; t = of('app.api.ui'); [*map(t.get_template, t.list_templates(['html']))]" \
    && chmod -R a+r app
# A number, so that an orchestrator can see that it is not root.
USER 10001:10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["python", "-m", "app", "health"]
ENTRYPOINT ["python", "-m", "app"]
CMD ["serve"]
