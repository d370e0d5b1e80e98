import type { JobEngine } from '../../core/contract/job-engine.js';
import type { LogFields, Logger } from '../../core/contract/ports.js';
import { ProviderError } from '../../core/errors/provider-error.js';
import { ToolwrightError } from '../../core/errors/toolwright-error.js';
import { cached } from '../../core/kernel/cached.js';
import { causesOf, errorMessage, isClientError } from '../../core/kernel/error-message.js';
import { forgetOldest } from '../../core/kernel/forget-oldest.js';
import { withoutUndefined } from '../../core/kernel/json.js';
import { visibleLine } from '../../core/kernel/visible-text.js';
import { loggerTo, safeLog } from './log.js';
import { KNOWN_SECRETS, type Redaction } from './redact.js';

/** A failure, its cause, and the affected ids. */
interface LoggedFailure {
  /** `Run failed`. */
  readonly what: string;
  readonly error: unknown;
  /** Ids, as fields of the entry: they do not distinguish causes. */
  readonly at?: LogFields;
  /** Hides secrets; default: known ones. */
  readonly redact?: Redaction | undefined;
}

/**
 * Logs at `error` why an operation failed, to the given logger or to the console. Each cause is logged once a minute,
 * so that an unavailable provider does not flood the log. Secrets are hidden. Aborts and client errors, such as
 * NestJS's HTTP exceptions, are logged at `debug`.
 */
export function logFailure(logger: Logger | undefined, failure: LoggedFailure): void {
  try {
    log(logger ?? CONSOLE, failure);
  } catch {
    // An error that throws when it is read, or a frozen one of another kind.
    safeLog(logger ?? CONSOLE).error(`${failure.what}: its error cannot be shown`, failure.at);
  }
}

function log(receiver: Logger, { what, error, at = {}, redact = KNOWN_SECRETS }: LoggedFailure): void {
  const reason = redact.mask(errorMessage(error), LONGEST_TEXT);
  const text = `${what}: ${visibleLine(reason)}`;
  const causes = causesOf(error);
  const safe = safeLog(receiver, redact);
  // Not a failure: another process continues it, or it was refused or stopped on purpose.
  const { name } = ToolwrightError.is(error) ? error : {};
  const isRefusal = name === 'RunAborted' || name === 'TaskCancelled' || causes.some(isClientError);
  if (name === 'RunClaimed' || isRefusal) {
    safe[isRefusal ? 'debug' : 'warn'](text, at);
    return;
  }
  const { status } = causes.find(ProviderError.is) ?? {};
  const cause = `${causeOf(text, at)} ${status}`;
  const logged = cached(known, receiver, () => new Map<string, KnownCause>());
  const before = logged.get(cause);
  const now = Date.now();
  if (before !== undefined && Math.abs(now - before.loggedAt) < AGAIN_AFTER_MS) {
    before.repeats += 1;
    return;
  }
  // Moved to the end, so that the first entry of the map is the oldest.
  logged.delete(cause);
  logged.set(cause, { loggedAt: now, repeats: 0 });
  forgetOldest(logged, MOST_CAUSES);
  // Errors of application code are logged without the fields that libraries add, such as request bodies. Messages of
  // provider errors and framework errors are complete.
  const isOwn = (cause: unknown): cause is Error => cause instanceof Error && !ToolwrightError.is(cause);
  const origin = causes.find((cause) => ProviderError.is(cause) || isOwn(cause));
  let shown: Error | undefined;
  if (isOwn(origin) && !ProviderError.is(origin)) {
    const { name, message, stack } = origin;
    shown = Object.assign(new Error(message), { name, stack });
  }
  safe.error(text, withoutUndefined({ ...at, repeats: before?.repeats || undefined, error: shown }));
}

const LONGEST_TEXT = 1_000;

/** Used without a logger. */
export const CONSOLE: Logger = loggerTo((level, message, fields = {}) => {
  if (level !== 'warn' && level !== 'error') return;
  console[level](`toolwright: ${message}`, ...(Object.keys(fields).length === 0 ? [] : [fields]));
});

/** A logged cause, and how often it has occurred since. */
interface KnownCause {
  readonly loggedAt: number;
  repeats: number;
}

const AGAIN_AFTER_MS = 60_000;
const MOST_CAUSES = 200;

/** By logger: each receives every cause. */
const known = new WeakMap<Logger, Map<string, KnownCause>>();

/** Ids and amounts in provider messages, which differ each time; statuses, versions and ports stay. */
const VARYING = /(?<![:\w])(?=\w*\d)\w{4,}/g;

function causeOf(text: string, at: LogFields = {}): string {
  let cause = text;
  for (const [name, id] of Object.entries(at))
    if (name.endsWith('Id')) cause = cause.replaceAll(`'${id}'`, '#');
  return cause.replace(VARYING, '#');
}

type NamedEngine = Pick<JobEngine, 'name'>;

/** Logs that an engine does not answer. The text is the same in all parts of the process, so that it is logged once. */
export function logSilence(
  engine: NamedEngine,
  { logger, error }: { readonly logger: Logger | undefined; readonly error: unknown },
): void {
  logFailure(logger, { what: silenceOf(engine), error: errorMessage(error) });
}

/**
 * Logs at `warn` that an engine answers again, if its silence was logged. The next silence is then logged immediately.
 */
export function logAnswer(engine: NamedEngine, logger: Logger | undefined): void {
  const { name = 'The engine' } = engine;
  const receiver = logger ?? CONSOLE;
  const causes = known.get(receiver);
  const silence = causeOf(silenceOf(engine));
  const ended = [...(causes?.keys() ?? [])].filter((cause) => cause.startsWith(silence));
  for (const cause of ended) causes?.delete(cause);
  if (ended.length > 0) safeLog(receiver).warn(`${name} answers again`);
}

function silenceOf({ name = 'The engine' }: NamedEngine): string {
  return `${name} does not answer; background work waits until it does`;
}
