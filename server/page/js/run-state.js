/**
 * The parts of a run's state: lanes, steps, attempts and calls. `run-model.js` folds events into it.
 *
 * A lane is the sequence of steps of one run: the run itself, or a child run that one of its
 * programs started. Child lanes are nested in the call that started them.
 *
 * @import {Envelope, Usage} from './types.js'
 *
 * @typedef {object} Attempt
 * @property {string} error Why the model was asked again.
 * @property {string|null} body The program that failed, if the answer had one.
 * @property {string} thought
 * @property {number} ts
 * @property {boolean} isLive If true, the attempt is not recorded: the model's stream broke off.
 *
 * @typedef {object} CallState
 * @property {string} key
 * @property {number} number
 * @property {string} label
 * @property {'wat'|'catalog'} source
 * @property {string} description
 * @property {string|null} body
 * @property {string[]} args
 * @property {number} start
 * @property {number|null} end Null while the program runs.
 * @property {boolean} success
 * @property {string} output
 * @property {number|null} exitCode
 * @property {number|null} durMs
 * @property {number|null} fuel
 * @property {string[]} fixes
 * @property {string|null} question What the call waits for, if it is parked.
 * @property {Note[]} notes The artifacts that the program left.
 * @property {Lane[]} children
 *
 * @typedef {object} Artifact
 * @property {string} run The run that keeps the data.
 * @property {string} name
 * @property {number} bytes
 *
 * @typedef {object} Note
 * @property {string} key
 * @property {'artifact'|'contributed'|'recalled'} kind
 * @property {string} text
 * @property {string|null} error Why the program of a trait or of the memory failed.
 * @property {number} ts
 * @property {Artifact|null} artifact
 *
 * @typedef {object} StepState
 * @property {string} key
 * @property {number} number
 * @property {number} start
 * @property {number|null} thinkEnd Null while the model writes.
 * @property {string} thought
 * @property {string} draft The model's text so far, as received, from live deltas.
 * @property {string} thinking The thought in it so far.
 * @property {string} written The answer in it so far.
 * @property {number} kept The length of the draft before the newest kept event of the step.
 * @property {string|null} error Why the run failed in this step.
 * @property {boolean} isAnswer If true, the step gave the run's answer and ran no program.
 * @property {Attempt[]} attempts The attempts that failed.
 * @property {Note[]} notes What the host added before the model was asked.
 * @property {CallState[]} calls
 * @property {Envelope[]} events
 *
 * @typedef {object} Lane
 * @property {string} runId
 * @property {StepState[]} steps
 * @property {Map<number, StepState>} byNumber
 * @property {boolean} isEnded
 * @property {number} started The start of its first step; 0 if it is that of the run.
 * @property {number} rootStep The index of the root run's step that the lane belongs to; -1 for the root.
 *
 * @typedef {object} RunState
 * @property {string} id
 * @property {Lane} root
 * @property {Map<string, Lane>} lanes
 * @property {number} started
 * @property {number} last The time of the newest event.
 * @property {number} lastSeq
 * @property {string|null} answer
 * @property {string|null} stop
 * @property {Usage|null} usage
 * @property {unknown} verdict
 * @property {Map<string, string>} parked The questions that wait for a person, by call.
 * @property {Map<string, Artifact>} artifacts The artifacts of the run itself, by name, the last changed one last.
 */

/**
 * Creates the state of a run without events.
 *
 * @param {string} id
 * @param {number} started
 * @returns {RunState}
 */
export function createRun(id, started) {
  const root = createLane(id, -1);
  return {
    id, root, lanes: new Map([[id, root]]), started, last: started, lastSeq: 0, answer: null,
    stop: null, usage: null, verdict: null, parked: new Map(), artifacts: new Map(),
  };
}

/**
 * Adds a step to a lane.
 *
 * @param {RunState} run
 * @param {Lane} lane
 * @param {number} number
 * @param {number} start
 */
export function addStep(run, lane, number, start) {
  /** @type {StepState} */
  const step = {
    key: lane === run.root ? String(number) : `${lane.runId}/${number}`, number, start, thinkEnd: null,
    thought: '', draft: '', thinking: '', written: '', kept: 0, error: null, isAnswer: false, attempts: [], notes: [], calls: [], events: [],
  };
  lane.steps.push(step);
  lane.byNumber.set(number, step);
  return step;
}

/**
 * Returns the newest time of a step that is known.
 *
 * @param {StepState} step
 */
export function lastEnd(step) {
  let end = step.thinkEnd ?? step.start;
  for (const call of step.calls) end = Math.max(end, call.end ?? call.start);
  return end;
}

/**
 * @param {string} runId
 * @param {number} rootStep
 * @param {number} [started]
 * @returns {Lane}
 */
export function createLane(runId, rootStep, started = 0) {
  return { runId, steps: [], byNumber: new Map(), isEnded: false, started, rootStep };
}

/**
 * Adds the lane of a child run to the call that started it: the newest call that still runs.
 *
 * @param {RunState} run
 * @param {Envelope} event
 */
export function openLane(run, event) {
  const lanes = [...run.lanes.values()].reverse();
  for (const parent of lanes) {
    const step = parent.steps.at(-1);
    const call = step?.calls.findLast((one) => one.end === null) ?? (parent === run.root ? step?.calls.at(-1) : undefined);
    if (!call) continue;
    const index = parent.rootStep >= 0 ? parent.rootStep : parent.steps.length - 1;
    const lane = createLane(event.run_id, index, Math.min(call.start, event.ts));
    call.children.push(lane);
    run.lanes.set(event.run_id, lane);
    return lane;
  }
  const lane = createLane(event.run_id, Math.max(0, run.root.steps.length - 1));
  run.lanes.set(event.run_id, lane);
  return lane;
}
