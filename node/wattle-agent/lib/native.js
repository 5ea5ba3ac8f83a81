"use strict";
// Loads the native module from the package of this platform.

/** The packages with the native module, by platform and processor. */
const PACKAGES = {
  "linux-x64": "wattle-agent-linux-x64-gnu",
  "linux-arm64": "wattle-agent-linux-arm64-gnu",
};

/** Describes the platforms that have a package. */
const SUPPORTED = "Linux with glibc on x64 and arm64";

/** Returns the package of a platform, or throws an error that names the supported ones. */
function packageOf(platform, arch) {
  const name = PACKAGES[`${platform}-${arch}`];
  if (name === undefined) {
    throw new Error(
      `wattle-agent has no native module for ${platform}-${arch}; it supports ${SUPPORTED}`,
    );
  }
  return name;
}

/** Explains why the native module of a package cannot be loaded. */
function explain(name, cause, hasGlibc) {
  if (!hasGlibc) {
    return `wattle-agent has no native module for this C library; it supports ${SUPPORTED}`;
  }
  if (cause.code === "MODULE_NOT_FOUND") {
    return (
      `the package ${name}, which contains the native module of wattle-agent, is not installed; ` +
      "install wattle-agent again, without `--omit=optional` and on the platform that it runs on"
    );
  }
  return `failed to load the native module of ${name}: ${cause.message}`;
}

function load() {
  const name = packageOf(process.platform, process.arch);
  try {
    return require(name);
  } catch (cause) {
    const hasGlibc = process.report.getReport().header.glibcVersionRuntime !== undefined;
    throw new Error(explain(name, cause, hasGlibc), { cause });
  }
}

module.exports = { load, packageOf, explain };
