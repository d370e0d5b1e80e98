import { jsonRecord, jsonText, parseJsonRecord } from './lenient-json.js';

/** One call as the server wrote it; `input` is the text of its arguments, not read yet. */
export interface WireCall {
  readonly id: string;
  readonly name: string;
  readonly input: string;
  /** A custom (free text) tool: its input is never JSON to be parsed. */
  readonly custom: boolean;
}

interface CallPiece extends WireCall {
  readonly index: number | undefined;
}

interface OpenCall {
  id: string;
  name: string;
  input: string;
  custom: boolean;
  readonly index: number;
}

/**
 * Puts the calls of one reply together from the pieces in which a stream brings them, or from a whole
 * message's list. The wire says that `index` tells the calls apart; servers that leave it out, give 0 to
 * every call, or repeat id and name in every piece are understood as well.
 */
export class CallAssembly {
  readonly #calls: OpenCall[] = [];

  /** Adds one entry of a delta's `tool_calls`. */
  addPiece(entry: unknown): void {
    const piece = readPiece(entry);
    const open = this.#openCallOf(piece);
    if (open === undefined || startsAnotherCall(open, piece)) this.#start(piece);
    else extend(open, piece);
  }

  /** Adds one entry of a whole message's `tool_calls`; each is a call of its own. */
  addWhole(entry: unknown): void {
    this.#start(readPiece(entry));
  }

  /** The calls so far, in call order; entries that said nothing at all are left out. */
  calls(): readonly WireCall[] {
    return this.#calls
      .filter(({ id, name, input }) => id !== '' || name !== '' || input !== '')
      .toSorted((a, b) => a.index - b.index)
      .map(({ id, name, input, custom }) => ({ id, name, input, custom }));
  }

  #openCallOf({ id, index }: CallPiece): OpenCall | undefined {
    if (index !== undefined) return this.#calls.findLast((call) => call.index === index);
    const named = id === '' ? undefined : this.#calls.findLast((call) => call.id === id);
    return named ?? this.#calls.at(-1);
  }

  #start({ id, name, input, custom, index }: CallPiece): void {
    this.#calls.push({ id, name, input, custom, index: index ?? this.#calls.at(-1)?.index ?? 0 });
  }
}

function readPiece(entry: unknown): CallPiece {
  const { id, index, function: fn, custom } = jsonRecord(entry);
  const isCustom = custom !== undefined && custom !== null;
  const body = jsonRecord(isCustom ? custom : fn);
  return {
    id: typeof id === 'number' ? String(id) : jsonText(id),
    index: typeof index === 'number' ? index : undefined,
    name: jsonText(body.name),
    input: inputText(isCustom ? body.input : body.arguments),
    custom: isCustom,
  };
}

function inputText(input: unknown): string {
  if (typeof input === 'string') return input;
  // Some servers send the arguments as JSON instead of as the text of JSON.
  return input === undefined || input === null ? '' : JSON.stringify(input);
}

function startsAnotherCall(open: OpenCall, piece: CallPiece): boolean {
  if (piece.name === '' || open.name === '') return false;
  if (piece.name !== open.name) return true;
  // The same name again: either a further call of the same tool, or a server that repeats itself in every
  // piece. Only whether the arguments so far are complete can tell the two apart.
  const otherId = piece.id !== '' && open.id !== '' && piece.id !== open.id;
  if (otherId) return open.input === '' || isComplete(open.input);
  return piece.input !== '' && isComplete(open.input);
}

function extend(open: OpenCall, piece: CallPiece): void {
  open.id ||= piece.id;
  open.name ||= piece.name;
  open.input += piece.input;
  open.custom ||= piece.custom;
}

/** Whether a text of arguments is a whole JSON object. The look at its end spares parsing most pieces. */
export function isComplete(input: string): boolean {
  return input.trimEnd().endsWith('}') && parseJsonRecord(input) !== undefined;
}
