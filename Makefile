# Tool versions. Nothing here needs to be installed by hand: Go fetches what a target needs into .tools.
GOLANGCI_LINT_VERSION := v2.15.0

# What a caller may set.
FUZZTIME ?= 10s
FUZZDIR ?= .
SEEDS ?= 3000
SEED ?= 1
TEST_TIMEOUT ?= 10m
E2E_TIMEOUT ?= 15m
CHAOS_TIMEOUT ?= 20m
ARGS ?=

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := targets
TOOLS := $(CURDIR)/.tools
MCP_SERVERS := $(TOOLS)/mcp
GOLANGCI_LINT := $(TOOLS)/golangci-lint-$(GOLANGCI_LINT_VERSION)

.PHONY: targets build test vet fmt-check race budgets integration e2e chaos r3 sim sim-nightly mutants mutants-ci fuzz bench bench-peers golden fmt lint cover mcp-servers ci

targets: ## print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

build: ## build the commands into bin/
	@mkdir -p bin
	go build -o bin/ ./cmd/...

test: vet fmt-check race budgets ## what a change must pass: vet, gofmt, all tests under the race detector, allocation budgets

vet:
	go vet ./...

fmt-check:
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then \
		printf 'not formatted (run make fmt):\n%s\n' "$$unformatted" >&2; exit 1; fi

race: ## all tests under the race detector
	go test -race -timeout $(TEST_TIMEOUT) $(ARGS) ./...

budgets: ## allocations of the hot path, which the race detector would count too high
	go test -run Budget ./coordinator/internal/turn ./protocol/... ./worker ./toolkit/tool/...

integration: ## tests of several parts over a real broker, not from the cache
	go test -race -count=1 -timeout $(TEST_TIMEOUT) $(ARGS) ./tests/integration/...

e2e: ## tests of the built commands as processes, not from the cache
	go test -count=1 -timeout $(E2E_TIMEOUT) $(ARGS) ./tests/e2e/...

mcp-servers: $(MCP_SERVERS)/installed ## the MCP servers that tests/e2e runs against, from npm; without them these tests are left out

$(MCP_SERVERS)/installed: tests/e2e/testdata/mcp/package-lock.json
	@command -v npm >/dev/null || { echo "npm is missing: install Node.js 20 or newer" >&2; exit 1; }
	rm -rf $(MCP_SERVERS)
	mkdir -p $(MCP_SERVERS)
	cp tests/e2e/testdata/mcp/package.json tests/e2e/testdata/mcp/package-lock.json $(MCP_SERVERS)/
	cd $(MCP_SERVERS) && npm ci --ignore-scripts --no-audit --no-fund --loglevel error
	touch $@

# A seed needs one processor to itself, so each half of the seeds has a process of its own.
sim: bin/sim.test ## SEEDS storms over simulated JetStream from SEED on (default 3000 from 1), beside the plans that failed once
	cd tests/sim && ../../bin/sim.test -test.run '^(TestPlansThatFailedOnceHold|TestOneSeedGivesOneHistoryOfTheFabric|TestWhatIsLostIsBroughtBackByTheWalk)$$' -repeat 50 -lost 60
	@cd tests/sim; half=$$(($(SEEDS) / 2)); \
	storms() { ../../bin/sim.test -test.v -test.timeout $(TEST_TIMEOUT) -test.run '^TestNothingIsLostOrDoubledInAStorm$$' -seed $$1 -seeds $$2; }; \
	storms $(SEED) $$half & first=$$!; \
	storms $$(($(SEED) + half)) $$(($(SEEDS) - half)) || { kill $$first; exit 1; }; \
	wait $$first

sim-nightly: bin/sim.test ## storms without end, from a seed of the clock on; prints count and rate
	cd tests/sim && ../../bin/sim.test -test.v -test.timeout 0 -test.run '^TestNothingIsLostOrDoubledInAStorm$$' -seed $$(date +%s)000000 -seeds -1

mutants: ## every mutant must be caught within 2,000 storms; prints a table
	go test -count=1 -tags mutants -timeout 30m -v -run '^TestMutants$$' ./tests/sim $(ARGS)

mutants-ci: ## 8 mutants in rotation
	go test -count=1 -tags mutants -timeout $(TEST_TIMEOUT) -v -run '^TestMutants$$' ./tests/sim -mutants 8 -rotate "$$(git rev-parse HEAD 2>/dev/null || date +%F)"

.PHONY: bin/sim.test
bin/sim.test:
	@mkdir -p bin
	go test -c -o $@ ./tests/sim

chaos: ## real processes break at every fault point, full streams and disks, a rolling restart; prints the times
	go test -count=1 -tags faults ./protocol/fault/
	go test -count=1 -v -timeout $(CHAOS_TIMEOUT) ./tests/chaos/ -args -all $(ARGS) | grep -v '^=== '

r3: ## three nats-servers as processes: every bus rule on three replicas, and the leaders of streams die
	go test -count=1 -v -timeout $(CHAOS_TIMEOUT) ./tests/r3/ -args -r3 $(ARGS) | grep -v '^=== '

# Without a bound the fuzzer spends most of a short run on making interesting inputs smaller: it shows 0 execs/s then.
fuzz: ## every fuzz target for FUZZTIME each (default 10s)
	@{ grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' $(FUZZDIR) || true; } | sed 's/func //' | sort | while IFS=: read -r file target; do \
		echo "fuzz $$target in $$(dirname "$$file") for $(FUZZTIME)"; \
		go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x "$$(dirname "$$file")" </dev/null; \
	done

bench: ## measure against plain NATS in one run (ARGS="--output json")
	go run ./cmd/toolfabric bench $(ARGS)

# A module of its own, so that the peers' clients are no dependencies of Toolfabric; -mod=mod lets it follow what the main
# module requires.
bench-peers: ## measure against Asynq, River and Restate; fetches and starts what it needs (ARGS="-output json")
	cd tests/bench/peers && GOFLAGS=-mod=mod go run . $(ARGS)

golden: ## rewrite the golden files; read the diff before you commit it
	@{ grep -rlE --include='*_test.go' 'flag\.Bool\("update"' . || true; } | xargs -r -n1 dirname | sort -u | while read -r dir; do \
		go test -count=1 "$$dir" -update </dev/null; \
	done
	git diff --stat

fmt: ## format all Go code
	gofmt -w .

lint: $(GOLANGCI_LINT) ## golangci-lint with .golangci.yml
	$(GOLANGCI_LINT) run $(ARGS) ./...

$(GOLANGCI_LINT):
	@mkdir -p $(TOOLS)
	GOBIN=$(TOOLS) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	mv $(TOOLS)/golangci-lint $@

cover: ## coverage of all packages by all tests, into bin/cover.out
	@mkdir -p bin
	go test -timeout $(TEST_TIMEOUT) -coverpkg=./... -coverprofile=bin/cover.out ./...
	go tool cover -func=bin/cover.out | tail -n 1

ci: lint ## lint, then what .ci/run does
	./.ci/run
