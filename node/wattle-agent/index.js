"use strict";

const errors = require("./lib/errors.js");
const { Program, Outcome, run } = require("./lib/program.js");
const { Catalog, check } = require("./lib/scope.js");
const { Agent, AgentStream } = require("./lib/agent.js");
const { tool } = require("./lib/tool.js");

exports.run = run;
exports.check = check;
exports.tool = tool;
exports.Program = Program;
exports.Outcome = Outcome;
exports.Catalog = Catalog;
exports.Agent = Agent;
exports.AgentStream = AgentStream;
exports.WattleError = errors.WattleError;
exports.InvalidProgramError = errors.InvalidProgramError;
exports.DeniedError = errors.DeniedError;
exports.ProgramFailedError = errors.ProgramFailedError;
exports.RunFailedError = errors.RunFailedError;
exports.ParkedError = errors.ParkedError;
exports.CancelledError = errors.CancelledError;
exports.SettingsError = errors.SettingsError;
exports.HostError = errors.HostError;
