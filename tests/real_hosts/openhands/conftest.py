"""What has to be set before OpenHands' packages are imported."""

import os

# litellm would fetch a list of prices over the network, in a thread that its own import may meet halfway.
os.environ |= {"OPENHANDS_SUPPRESS_BANNER": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LOG_LEVEL": "ERROR"}
