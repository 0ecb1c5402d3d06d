"""The A/B kit: mini-swe-agent on SWE-bench instances, without readcache and with each preset. See README.md."""
