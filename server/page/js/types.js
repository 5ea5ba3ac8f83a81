/**
 * The shapes of the HTTP API, as JSDoc types. This module has no code.
 *
 * @typedef {'queued'|'running'|'parked'|'done'|'failed'|'cancelled'|'blocked'|'stopped'} Status
 *
 * @typedef {object} Usage
 * @property {number} prompt Tokens sent, including cached ones.
 * @property {number} completion Tokens that the model wrote.
 * @property {number} cached
 * @property {number} [cost] In dollars.
 *
 * @typedef {object} Waiting
 * @property {string} call The step and the call within it, such as `2.1`.
 * @property {string} question
 *
 * @typedef {object} RunLine
 * @property {string} id
 * @property {string|null} session_id
 * @property {Status} status
 * @property {string} prompt
 * @property {string} model
 * @property {string} agent
 * @property {number} created Milliseconds since 1970.
 * @property {number} updated
 * @property {number} steps
 * @property {string|null} result
 * @property {string|null} stop
 * @property {Usage|null} usage
 * @property {[string, number]|null} [forked] The run and the step that it was forked from.
 * @property {string|null} [reason] Why an operator must release it.
 * @property {string|null} [parent] The run that started it, if it is a child run.
 *
 * @typedef {object} RunDetails
 * @property {{name: string, calls: number, failed: number, dur_ms: number}[]} tools
 * @property {Waiting[]} waiting
 * @property {ArtifactLine[]} [artifacts] What its programs left for the application.
 * @property {string} [events_org]
 *
 * @typedef {object} ArtifactLine
 * @property {string} name
 * @property {number} bytes
 *
 * @typedef {RunLine & RunDetails} Run
 *
 * @typedef {object} Envelope
 * @property {string} run_id
 * @property {string} root_run_id
 * @property {number} [seq] A live event has that of the kept event before it.
 * @property {boolean} [isLive] If true, the event is not recorded. Set by the page.
 * @property {number} ts
 * @property {string} type
 * @property {number} [step]
 * @property {string|number} [call]
 * @property {string} [text]
 * @property {string} [content]
 * @property {string} [label]
 * @property {'wat'|'catalog'} [source]
 * @property {string} [description]
 * @property {string} [body]
 * @property {string[]} [args]
 * @property {boolean} [success]
 * @property {string} [output]
 * @property {number|null} [exit_code]
 * @property {number} [dur_ms]
 * @property {number|null} [fuel]
 * @property {string[]} [fixed]
 * @property {number} [attempt]
 * @property {string} [error]
 * @property {number} [after_ms] Of a `retry`: the delay before a failed request is repeated.
 * @property {string} [question]
 * @property {string} [name] The name of an artifact.
 * @property {number} [bytes] The size of an artifact.
 * @property {string} [program] The program of a trait, such as `house_style.prompt`.
 * @property {number} [items] The number of items that were recalled from memory.
 * @property {unknown} [verdict]
 * @property {string|null} [session_id]
 * @property {number} [steps]
 * @property {Usage} [usage]
 * @property {string} [stop]
 * @property {string} [message]
 *
 * @typedef {object} ModelRequest
 * @property {number} step
 * @property {number} attempt Counted from 0.
 * @property {string} purpose
 * @property {number} same The number of messages at the start that are those of the previous request.
 * @property {{role: string, content: string, calls: {name: string, arguments: string}[]}[]} messages The remaining messages.
 * @property {{text: string, reasoning: string|null, calls: {name: string, arguments: string}[], usage: Usage}|null} answer Null if there is none.
 *
 * @typedef {object} Agent
 * @property {string} name
 * @property {string} title
 * @property {string} description
 * @property {string} version
 * @property {string[]} delegates
 *
 * @typedef {object} MemoryItem
 * @property {number} id
 * @property {string} text
 * @property {number} created
 *
 * @typedef {object} HostCall
 * @property {number} step
 * @property {number|string} program The call of the step that ran the program.
 * @property {string} path
 * @property {number} number
 * @property {string} function
 * @property {string} effect
 * @property {string} args
 * @property {string|null} result
 * @property {string|null} error
 * @property {boolean} [pending]
 * @property {number|null} ts Null if it was recorded by a version without times.
 * @property {number|null} dur_ms Null while the call is under way, too.
 *
 * @typedef {object} SessionLine
 * @property {string} id
 * @property {string} title
 * @property {number} messages
 * @property {number} bytes
 * @property {number} created
 * @property {number} used
 *
 * @typedef {object} SessionFile
 * @property {string} path
 * @property {number} size
 * @property {number|null} modified
 * @property {boolean} created If false, the base folder contains the file.
 * @property {boolean} deleted
 *
 * @typedef {object} Session
 * @property {string} id
 * @property {string} title
 * @property {{role: string, content: string}[]} messages
 * @property {RunLine[]} runs
 * @property {SessionFile[]} files
 *
 * @typedef {object} ProgramArg
 * @property {string} name
 * @property {string} type
 * @property {string|number|boolean|null} [default]
 * @property {boolean} required
 * @property {string} description
 *
 * @typedef {object} Program
 * @property {string} name
 * @property {string} description
 * @property {string} family
 * @property {string} origin
 * @property {ProgramArg[]} args
 * @property {string[]} uses
 * @property {string} [source]
 * @property {{args: (string|number|boolean)[], output?: string, fixtures?: Record<string, unknown>}[]} [examples]
 *
 * @typedef {object} ExecResult
 * @property {boolean} success
 * @property {number|null} exit_code
 * @property {string} output
 * @property {string|null} error
 * @property {number} dur_ms
 * @property {number|null} fuel
 *
 * @typedef {object} ExampleResult
 * @property {number} line
 * @property {boolean} passed
 * @property {string[]} differences
 *
 * @typedef {object} Diagnostic
 * @property {number} line Counted from 1.
 * @property {number} column Counted from 1.
 * @property {number} end_line
 * @property {number} end_column
 * @property {'error'|'warning'} severity
 * @property {string} message
 * @property {string} [hint]
 * @property {{text: string}} [fix] The whole program with the fix applied.
 *
 * @typedef {object} Authority
 * @property {string[]} unknown What is known only when the program runs.
 * @property {string[]} [imports]
 * @property {string[]} [functions]
 * @property {string[]} [reads]
 * @property {string[]} [writes]
 * @property {string[]} [hosts]
 * @property {string[]} [urls]
 * @property {string[]} [keys]
 * @property {string[]} [secrets]
 * @property {string[]} [services]
 * @property {string[]} [programs]
 *
 * @typedef {object} Check
 * @property {boolean} ok
 * @property {Diagnostic[]} diagnostics
 * @property {Authority|null} authority Null if the program is not valid.
 * @property {string} [formatted]
 *
 * @typedef {object} Settings
 * @property {string} version
 * @property {string} model
 * @property {string|null} [model_problem] Why runs cannot ask a model.
 * @property {string[]} models
 * @property {string} agent
 * @property {string} tenant
 * @property {string[]} scopes
 * @property {boolean} hasOneScope If true, a token has one scope, which includes the lesser ones.
 * @property {number} [max_steps]
 * @property {number} [body_bytes]
 * @property {number} [file_bytes]
 * @property {boolean} exec
 * @property {boolean} [applies] If true, changes of sessions can be applied to the server's folder.
 * @property {{key: string, value: unknown, origin: string}[]} settings
 *
 * @typedef {object} Token
 * @property {string} name
 * @property {string[]} scopes
 * @property {string} [tenant]
 * @property {number} [created]
 *
 * @typedef {object} Integration
 * @property {string} name
 * @property {string} [system_prompt]
 * @property {string} [agent]
 * @property {string} [session_id]
 */

export {};
