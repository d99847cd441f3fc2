# The commands of Notewire; each sets up what it needs. `make run ARGS="--port 9000"`.
PYTHON ?= python3
ARGS ?=

.PHONY: run test quick lock

run:
	@$(PYTHON) bootstrap.py run $(ARGS)

test:
	@$(PYTHON) bootstrap.py test $(ARGS)

quick:
	@$(PYTHON) bootstrap.py quick $(ARGS)

lock:
	@$(PYTHON) bootstrap.py lock
