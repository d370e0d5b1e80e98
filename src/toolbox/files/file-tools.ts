import { applyPatch, createTwoFilesPatch, formatPatch, parsePatch } from 'diff';
import { Param, Tool, ToolContext, Toolset } from '../../../decorators/index.js';
import type { JsonObject } from '../../core/contract/json-schema.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import { ToolResult } from '../../core/contract/tool-result.js';
import type { ResourceAccess } from '../../core/contract/touch.js';
import { escapePattern } from '../../core/kernel/escape-pattern.js';
import { requiredText } from '../../core/kernel/json.js';
import { toolsOfInstances } from '../../tools/discovery/discover-tools.js';
import { ifPossible } from '../paths/folder-path.js';
import { globMatcher } from '../paths/glob.js';
import { DiskFileSystem, type DiskFileSystemOptions } from './disk-file-system.js';
import { alreadyThere, type FileBytes, FileSystem, FileSystemError, missing } from './file-system.js';
import {
  contentOf,
  describeFolder,
  encodeText,
  fileVersion,
  findFiles,
  readByBytes,
  readByLines,
  searchFiles,
} from './read-files.js';

/** Limits of the file tools per call; a subclass may change them. */
export interface FileLimits {
  /** Lines per read; default: 2,000. */
  readonly lines: number;
  /** Bytes per read; default: 100,000. */
  readonly bytes: number;
  /** Size of an image for the model; default: 5,000,000. */
  readonly imageBytes: number;
  /** Size of a file to edit or to read whole; larger files are read in parts. Default: 16,000,000. */
  readonly fileBytes: number;
  /** Paths per result; default: 500. */
  readonly paths: number;
  /** Milliseconds per search; default: 20,000. */
  readonly searchMs: number;
}

const EDITS = {
  type: 'array',
  minItems: 1,
  maxItems: 100,
  items: {
    type: 'object',
    properties: {
      oldText: {
        type: 'string',
        minLength: 1,
        description: 'Text to replace, exactly as it is in the file, including white space',
      },
      newText: { type: 'string', description: 'The new text; empty to delete the old text' },
      all: {
        type: 'boolean',
        description: 'Replace every occurrence; otherwise the text must occur exactly once',
      },
    },
    required: ['oldText', 'newText'],
  },
};

const PATH = 'Path relative to the root folder, e.g. src/index.ts';
const FROM_ZERO = { type: () => Number, minimum: 0, multipleOf: 1 };
const FROM_ONE = { ...FROM_ZERO, minimum: 1 };
const VERSION =
  'Version of the file, as returned when you read it; the call fails if the file has changed since';

/**
 * Tools for the files of one folder: read, list, find, search, write, edit, patch, move and delete. They work in the
 * injected {@link FileSystem}. Use a policy to restrict them (`toolwright/toolbox/permissions`): without a policy, they
 * do everything that the model requests.
 *
 * @example
 * ```ts
 * import { container, type InjectionToken } from 'tsyringe';
 *
 * container.register(FileSystem as InjectionToken<FileSystem>, { useValue: new DiskFileSystem({ root: process.cwd() }) });
 * tools.register(...discoverTools({ toolsets: [FileTools] }));
 * ```
 */
@Toolset({ name: 'Files', description: 'Reads and changes the files of one folder.' })
export class FileTools {
  protected readonly limits: FileLimits = {
    lines: 2_000,
    bytes: 100_000,
    imageBytes: 5_000_000,
    fileBytes: 16_000_000,
    paths: 500,
    searchMs: 20_000,
  };
  /** Resolves when the running change and all waiting changes are done. */
  #changes: Promise<unknown> = Promise.resolve();

  constructor(protected readonly files: FileSystem) {}

  @Tool({
    description:
      'Read a file: its version, and its lines, each after its number and a tab. Images are shown. Continue a long file with fromLine, and a long line with fromByte.',
    annotations: { title: 'Read file', readOnly: true },
    touches: 'fileRead',
  })
  readFile(
    @Param({ name: 'path', description: PATH, required: true }) path: string,
    @Param({ name: 'fromLine', description: 'First line to read, starting at 1', ...FROM_ONE }) fromLine = 1,
    @Param({ name: 'lines', description: 'Number of lines', ...FROM_ONE, required: false }) lines?: number,
    @Param({
      name: 'fromByte',
      description: 'First byte to read, starting at 0; the file is then read by bytes instead of lines',
      ...FROM_ZERO,
      required: false,
    })
    fromByte?: number,
    @Param({ name: 'bytes', description: 'Number of bytes', ...FROM_ONE, required: false }) bytes?: number,
  ): Promise<ToolResult> {
    const { limits } = this;
    if (fromByte === undefined && bytes === undefined)
      return readByLines(this.files, {
        path,
        fromLine,
        lines: Math.min(lines ?? limits.lines, limits.lines),
        limits,
      });
    return readByBytes(this.files, {
      path,
      from: fromByte ?? 0,
      most: Math.min(bytes ?? limits.bytes, limits.bytes),
    });
  }

  @Tool({
    description: 'List a folder: names, kinds, and sizes in bytes.',
    annotations: { title: 'List folder', readOnly: true },
    touches: 'pathRead',
  })
  listFiles(
    @Param({ name: 'path', description: 'Path of the folder; default: the root folder' }) path = '.',
  ): Promise<string> {
    return describeFolder(this.files, path, this.limits.paths);
  }

  @Tool({
    description:
      'Find files by a path pattern, such as src/**/*.ts. Files that .gitignore excludes are omitted.',
    annotations: { title: 'Find files', readOnly: true },
    touches: 'folderRead',
  })
  async findFiles(
    @Param({
      name: 'pattern',
      description: 'Pattern relative to path, with * ? ** [a-z] {a,b}',
      required: true,
      minLength: 1,
    })
    pattern: string,
    @Param({ name: 'path', description: 'Folder to search; default: the root folder' }) path = '.',
    @Param({ name: 'withIgnored', description: 'Include files that .gitignore excludes' })
    withIgnored = false,
    context?: ToolContext,
  ): Promise<string> {
    const selection = { path, fits: globMatcher(pattern), withIgnored, signal: context?.signal };
    return findFiles(this.files, selection, this.limits.paths);
  }

  @Tool({
    description:
      'Search the lines of files for a text or a regular expression. Returns paths, line numbers and lines. Binary files, and files that .gitignore excludes, are omitted.',
    annotations: { title: 'Search files', readOnly: true },
    touches: 'folderRead',
  })
  async searchFiles(
    @Param({ name: 'text', description: 'Text or regular expression to search for', required: true })
    text: string,
    @Param({
      name: 'regex',
      description: 'Whether text is a JavaScript regular expression, matched line by line',
    })
    regex = false,
    @Param({ name: 'ignoreCase', description: 'Ignore the difference between upper and lower case' })
    ignoreCase = false,
    @Param({ name: 'path', description: 'Folder or file to search; default: the root folder' }) path = '.',
    @Param({
      name: 'files',
      description: 'Path pattern of the files to search, e.g. **/*.ts',
      required: false,
      type: () => String,
    })
    files?: string,
    @Param({
      name: 'around',
      description: 'Lines of context around each match',
      minimum: 0,
      maximum: 20,
      multipleOf: 1,
    })
    around = 0,
    @Param({
      name: 'most',
      description: 'Maximum number of matching lines',
      minimum: 1,
      maximum: 1000,
      multipleOf: 1,
    })
    most = 100,
    @Param({ name: 'withIgnored', description: 'Include files that .gitignore excludes' })
    withIgnored = false,
    context?: ToolContext,
  ): Promise<string> {
    return searchFiles(this.files, {
      path,
      fits: files === undefined ? undefined : globMatcher(files),
      withIgnored,
      signal: context?.signal,
      text,
      isPattern: regex,
      ignoresCase: ignoreCase,
      context: around,
      most,
      until: performance.now() + this.limits.searchMs,
    });
  }

  @Tool({
    description:
      'Write a whole file; missing folders are created. An existing file is replaced only if you give its version.',
    annotations: { title: 'Write file', destructive: true, idempotent: true },
    touches: 'pathWritten',
    preview: 'writePreviewed',
  })
  writeFile(
    @Param({ name: 'path', description: PATH, required: true }) path: string,
    @Param({ name: 'text', description: 'The whole text of the file', required: true }) text: string,
    @Param({ name: 'version', description: VERSION, required: false }) version?: string,
  ): Promise<ToolResult> {
    return this.change(`write ${path}`, this.planWrite({ path, text, version }));
  }

  @Tool({
    description:
      'Edit a file by replacing exact texts. Each edit refers to the current text of the file. Either all edits are made, or none.',
    annotations: { title: 'Edit file', destructive: true },
    touches: 'pathWritten',
    preview: 'editPreviewed',
  })
  editFile(
    @Param({ name: 'path', description: PATH, required: true }) path: string,
    @Param({ name: 'edits', description: 'The replacements', schema: EDITS, required: true })
    edits: readonly TextEdit[],
    @Param({ name: 'version', description: VERSION, required: false }) version?: string,
  ): Promise<ToolResult> {
    return this.change(`edit ${path}`, this.planEdit({ path, edits, version }));
  }

  @Tool({
    description:
      'Apply a unified patch (diff -u, git diff) to files; it may create, rename and delete files. If it does not match the files exactly, nothing is changed.',
    annotations: { title: 'Patch files', destructive: true },
    touches: 'pathsPatched',
    preview: 'patchPreviewed',
  })
  patchFiles(
    @Param({ name: 'patch', description: 'The patch', required: true }) patch: string,
  ): Promise<ToolResult> {
    return this.change('patch files', this.planPatch({ patch }));
  }

  @Tool({
    description: 'Move or rename a file or a folder. The new path must not exist yet.',
    annotations: { title: 'Move file', destructive: true },
    touches: 'pathsMoved',
  })
  moveFile(
    @Param({ name: 'from', description: 'Current path', required: true }) from: string,
    @Param({ name: 'to', description: 'New path', required: true }) to: string,
  ): Promise<string> {
    return this.inTurn(async () => {
      await this.files.move(from, to);
      return `${this.files.pathOf(from)} is now ${this.files.pathOf(to)}`;
    });
  }

  @Tool({
    description: 'Delete a file, a link (not its target), or a folder.',
    annotations: { title: 'Delete file', destructive: true },
    touches: 'pathWritten',
  })
  deleteFile(
    @Param({ name: 'path', description: PATH, required: true }) path: string,
    @Param({
      name: 'withContents',
      description: 'Delete a folder with its contents; otherwise the folder must be empty',
    })
    withContents = false,
  ): Promise<string> {
    return this.inTurn(async () => {
      await this.files.remove(path, { withContents });
      return `${this.files.pathOf(path)}: removed`;
    });
  }

  /** Makes changes that belong together, after all earlier changes. Everything is tried before the first write. */
  private change(about: string, plan: ChangePlan): Promise<ToolResult> {
    return this.inTurn(() =>
      this.files.together(about, async (files) => {
        const planned = await plan(files);
        await writeAll(files, planned);
        return resultOf(planned);
      }),
    );
  }

  /** Models edit a file several times in one message; without a queue, the second edit would have an old version. */
  private inTurn<Value>(work: () => Promise<Value>): Promise<Value> {
    const done = this.#changes.then(work);
    this.#changes = done.catch(() => {});
    return done;
  }

  // The arguments of the plans were validated against the schemas of the tools.

  private planWrite({ path, text, version }: JsonObject): ChangePlan {
    const wanted = { path, version, isWhole: true, most: this.limits.fileBytes } as FileChange;
    return (files) => planChange(files, wanted, () => ({ ok: true, text: text as string }));
  }

  private planEdit({ path, edits, version }: JsonObject): ChangePlan {
    const wanted = { path, version, isWhole: false, most: this.limits.fileBytes } as FileChange;
    return (files) => planChange(files, wanted, (text) => editText(text, edits as readonly TextEdit[]));
  }

  private planPatch({ patch }: JsonObject): ChangePlan {
    return (files) => planPatches(files, patch as string, this.limits.fileBytes);
  }

  /** The diff of a write. */
  protected writePreviewed(args: JsonObject): Promise<string> {
    return preview(this.planWrite(args)(this.files));
  }

  /** The diff of edits. */
  protected editPreviewed(args: JsonObject): Promise<string> {
    return preview(this.planEdit(args)(this.files));
  }

  /** The diffs of a patch. */
  protected patchPreviewed(args: JsonObject): Promise<string> {
    return preview(this.planPatch(args)(this.files));
  }

  /** Access of a call that reads one file. */
  protected fileRead(args: JsonObject): Promise<readonly ResourceAccess[]> {
    return this.pathRead({ path: requiredText(args, 'path') });
  }

  /** Access of a call that reads one path. */
  protected pathRead({ path = '.' }: JsonObject): Promise<readonly ResourceAccess[]> {
    return this.touched('read', path, 'alone');
  }

  /** Access of a call that searches a folder. */
  protected folderRead({ path = '.' }: JsonObject): Promise<readonly ResourceAccess[]> {
    return this.touched('read', path, 'with contents');
  }

  /** Access of a call that writes one path. */
  protected pathWritten(args: JsonObject): Promise<readonly ResourceAccess[]> {
    return this.touched('write', requiredText(args, 'path'), 'with contents');
  }

  /** Access of a move. */
  protected async pathsMoved(args: JsonObject): Promise<readonly ResourceAccess[]> {
    return [
      ...(await this.touched('write', requiredText(args, 'from'), 'with contents')),
      ...(await this.touched('write', requiredText(args, 'to'), 'alone')),
    ];
  }

  /** Access of a patch. */
  protected async pathsPatched(args: JsonObject): Promise<readonly ResourceAccess[]> {
    const patch = requiredText(args, 'patch');
    const files = ifPossible(() => readPatch(patch)) ?? [];
    const paths = files.flatMap(({ from, to }) => [from, to]).filter((path) => path !== undefined);
    const touched = [...new Set(paths)].map((path) => this.touched('write', path, 'alone'));
    return (await Promise.all(touched)).flat();
  }

  /** The tool itself refuses a path outside of the folder, so it accesses nothing. */
  protected async touched(
    action: 'read' | 'write',
    given: unknown,
    how: 'alone' | 'with contents',
  ): Promise<readonly ResourceAccess[]> {
    try {
      const path = this.files.pathOf(String(given));
      const isFolder = how === 'with contents' && (await this.files.info(path))?.kind === 'folder';
      const folder = this.files.folderOnDisk?.();
      return [{ action, path, ...(isFolder && { isDeep: true }), ...(folder !== undefined && { folder }) }];
    } catch {
      return [];
    }
  }
}

/**
 * Creates the file tools for a folder on disk, or for any {@link FileSystem}, without a container.
 *
 * @throws InvalidOptionsError (521).
 *
 * @example
 * ```ts
 * tools.register(...fileTools({ root: process.cwd() }));
 * ```
 */
export function fileTools(options: DiskFileSystemOptions | FileSystem): ToolDefinition[] {
  return toolsOfInstances(
    new FileTools(options instanceof FileSystem ? options : new DiskFileSystem(options)),
  );
}

/** Finds all errors of a change before anything is written. */
type ChangePlan = (files: FileSystem) => Promise<readonly PlannedFile[]>;

/** A file to change. */
interface FileChange {
  readonly path: string;
  /** The version that the model has read. */
  readonly version: string | undefined;
  /** The file is replaced as a whole, or created. */
  readonly isWhole: boolean;
  /** The most bytes of a file that is changed. */
  readonly most: number;
}

/** A file as it is; `text` is empty if a file that is not text is replaced as a whole. */
type OpenFile = FileBytes & { readonly text: string };

/** A file before and after a change: `from` is `undefined` if it is created, `to` if it is removed. */
interface PlannedFile {
  readonly from?: string;
  readonly to?: string;
  readonly there?: OpenFile;
  readonly after: string;
}

/** The diffs of planned changes for the person who approves them, or why they would fail. */
async function preview(planning: Promise<readonly PlannedFile[]>): Promise<string> {
  try {
    const shown = (await planning).map((planned) => {
      const { to, from, there, after } = planned;
      const sizes = `from ${there?.text.length ?? 0} to ${after.length} characters`;
      return differenceIn(planned) ?? `${to ?? from}: ${sizes}; the difference is too large to show`;
    });
    return shown.join('\n');
  } catch (error) {
    if (error instanceof FileSystemError) return `The change would fail: ${error.message}`;
    throw error;
  }
}

function differenceIn({ from, to, there, after }: PlannedFile): string | undefined {
  return differenceOf(to ?? from ?? '', there?.text ?? '', after);
}

/** The model gets a short confirmation; people see the diff. */
function resultOf(files: readonly PlannedFile[]): ToolResult {
  const changes = files.map((planned) => {
    const { from, to } = planned;
    return { path: to ?? from ?? '', verb: verbOf(from, to), difference: differenceIn(planned) };
  });
  const lines = files.map(({ from, to, after }) => {
    const version = to === undefined ? '' : `, version ${fileVersion(encodeText(after))}`;
    return `${to ?? from}: ${verbOf(from, to)}${version}`;
  });
  const shown = changes.flatMap(({ difference }) => difference ?? []).join('\n');
  return new ToolResult({ forLLM: lines.join('\n'), forUser: shown || undefined, details: { changes } });
}

function verbOf(from: string | undefined, to: string | undefined): string {
  if (from === undefined) return 'created';
  if (to === undefined) return 'removed';
  return from === to ? 'changed' : `moved from ${from}`;
}

async function planChange(
  files: FileSystem,
  wanted: FileChange,
  change: (text: string) => Edited,
): Promise<readonly PlannedFile[]> {
  const { version, isWhole } = wanted;
  const path = files.pathOf(wanted.path);
  const there = await openFile(files, path, wanted);
  const now = there && fileVersion(there.bytes);
  if (there === undefined && !isWhole) throw missing(path);
  if (there === undefined && version !== undefined)
    throw new FileSystemError(
      'changed',
      `'${path}' no longer exists. Without a version, the call creates it again.`,
    );
  if (there !== undefined && isWhole && version === undefined)
    throw new FileSystemError(
      'exists',
      `'${path}' already exists. Edit it; or read it, and give its version to replace it.`,
    );
  if (version !== undefined && version !== now)
    throw new FileSystemError(
      'changed',
      `'${path}' has changed since it was read: its version is ${now}, not ${version}. Read it again.`,
    );
  const changed = change(there?.text ?? '');
  const refused = (why: string) => new FileSystemError('failed', `'${path}' was not changed:${why}`);
  if (!changed.ok) throw refused(`\n${changed.problems.map((one) => `- ${one}`).join('\n')}`);
  // A lone surrogate has no bytes: a replacement character would be written instead.
  if (!changed.text.isWellFormed()) throw refused(' the new text would contain half of a character.');
  return [{ to: path, after: changed.text, from: there && path, there }];
}

/** An edited file must be text; a file that is replaced as a whole may be anything. */
async function openFile(
  files: FileSystem,
  path: string,
  { most, isWhole }: Pick<FileChange, 'most' | 'isWhole'>,
): Promise<OpenFile | undefined> {
  const info = await files.info(path);
  if (info === undefined) return undefined;
  if (info.kind === 'file' && info.size > most)
    throw new FileSystemError(
      'failed',
      `'${path}' is too large to change: ${info.size} bytes; the limit is ${most}.`,
    );
  const read = await files.read(path);
  const content = contentOf(read.bytes);
  if (content.kind === 'text') return { ...read, text: content.text };
  if (isWhole) return { ...read, text: '' };
  const why = content.kind === 'image' ? 'it is an image' : content.why;
  throw new FileSystemError('kind', `'${path}' cannot be edited: ${why}.`);
}

async function planPatches(files: FileSystem, patch: string, most: number): Promise<readonly PlannedFile[]> {
  const planned: PlannedFile[] = [];
  const problems: string[] = [];
  const used = new Set<string>();
  for (const file of readPatch(patch)) {
    try {
      const from = file.from === undefined ? undefined : files.pathOf(file.from);
      const to = file.to === undefined ? undefined : files.pathOf(file.to);
      if (to !== undefined && to !== from && (await files.info(to)) !== undefined) throw alreadyThere(to);
      const there = from === undefined ? undefined : await openFile(files, from, { most, isWhole: false });
      if (from !== undefined && there === undefined) throw missing(from);
      const after = file.apply(there?.text ?? '');
      if (after === false)
        throw new FileSystemError('failed', `'${from ?? to}' does not match the patch. Read it again.`);
      if (to === undefined && after !== '')
        throw new FileSystemError('failed', `'${from}' contains more text than the patch removes.`);
      for (const path of new Set([from, to])) {
        if (path === undefined) continue;
        if (used.has(path)) throw new FileSystemError('failed', `The patch changes '${path}' twice.`);
        used.add(path);
      }
      planned.push({ from, to, there, after });
    } catch (error) {
      if (!(error instanceof FileSystemError)) throw error;
      problems.push(`- ${error.message}`);
    }
  }
  if (problems.length > 0)
    throw new FileSystemError('failed', `Nothing was patched:\n${problems.join('\n')}`);
  return planned;
}

/**
 * Writes each file on the condition that it has not changed since the change was planned. If a write fails, the earlier
 * writes are undone.
 */
async function writeAll(files: FileSystem, planned: readonly PlannedFile[]): Promise<void> {
  const undo: (() => Promise<unknown>)[] = [];
  try {
    for (const { from, to, there, after } of planned) {
      if (to !== undefined) {
        const isNew = from !== to || there === undefined;
        const replaces = isNew ? 'absent' : { stamp: there.stamp };
        const { stamp } = await files.write(to, encodeText(after), { replaces });
        undo.push(() => (isNew ? files.remove(to) : files.write(to, there.bytes, { replaces: { stamp } })));
      }
      if (from !== undefined && from !== to && there !== undefined) {
        await files.remove(from);
        undo.push(() => files.write(from, there.bytes, { replaces: 'absent' }));
      }
    }
  } catch (error) {
    if (planned.length === 1 && undo.length === 0) throw error;
    const failed: string[] = [];
    for (const back of undo.reverse()) await back().catch((cause: Error) => failed.push(cause.message));
    const rest =
      failed.length === 0
        ? 'All changes were undone.'
        : `Some changes could not be undone: ${failed.join(' ')}`;
    throw new FileSystemError('failed', `The patch was not applied: ${(error as Error).message} ${rest}`, {
      cause: error,
    });
  }
}

/** A replacement in a text. */
export interface TextEdit {
  /** The exact text to replace; it must occur exactly once, unless `all`. */
  readonly oldText: string;
  readonly newText: string;
  /** Replace every occurrence. */
  readonly all?: boolean;
}

/** The result: all edits were made, or none, with the reason. */
type Edited =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly problems: readonly string[] };

/** A range of a text and its replacement. */
interface Replacement {
  readonly start: number;
  readonly end: number;
  readonly text: string;
  /** Number of the edit, from 1. */
  readonly edit: number;
}

const MOST_NAMED_LINES = 5;

/**
 * Makes all edits of a text, or none. Each edit refers to the original text, so their order does not matter; edits that
 * overlap are refused. If all lines of a text end in `\r\n`, `\n` in edits is converted.
 */
function editText(text: string, edits: readonly TextEdit[]): Edited {
  const replacements: Replacement[] = [];
  const problems: string[] = [];
  for (const [index, edit] of edits.entries()) {
    const found = placesOf(text, edit);
    if (found.ok) for (const one of found.places) replacements.push({ ...one, edit: index + 1 });
    else problems.push(`edit ${index + 1}: ${found.problem}`);
  }
  replacements.sort((one, other) => one.start - other.start || one.edit - other.edit);
  for (const [index, next] of replacements.entries()) {
    const before = replacements[index - 1];
    if (before !== undefined && next.start < before.end)
      problems.push(
        `edits ${before.edit} and ${next.edit} change the same text in line ${lineAt(text, next.start)}`,
      );
  }
  if (problems.length > 0) return { ok: false, problems };
  const parts: string[] = [];
  let end = 0;
  for (const replacement of replacements) {
    parts.push(text.slice(end, replacement.start), replacement.text);
    end = replacement.end;
  }
  const edited = parts.join('') + text.slice(end);
  if (edited === text) return { ok: false, problems: ['the edits do not change the text'] };
  return { ok: true, text: edited };
}

type Places =
  | { readonly ok: true; readonly places: readonly Omit<Replacement, 'edit'>[] }
  | { readonly ok: false; readonly problem: string };

function placesOf(text: string, { all = false, ...edit }: TextEdit): Places {
  // Models write `\n`; a text with only `\r\n` keeps its line endings.
  const isPlain = /(?<!\r)\n/.test(text) || !text.includes('\r\n') || edit.oldText.includes('\r\n');
  const ended = (part: string): string => (isPlain ? part : part.replace(/\r?\n/g, '\r\n'));
  const oldText = ended(edit.oldText);
  const newText = ended(edit.newText);
  if (oldText === '') return { ok: false, problem: 'oldText is empty; use write_file to write a whole file' };
  const starts: number[] = [];
  // Overlapping occurrences count, too: they make the edit ambiguous.
  for (let at = text.indexOf(oldText); at >= 0; at = text.indexOf(oldText, at + (all ? oldText.length : 1)))
    starts.push(at);
  if (starts.length === 0) {
    // The most frequent mistake: the text differs only in white space.
    const wanted = oldText.trim().split(/\s+/).map(escapePattern).join('\\s+');
    const near = wanted.length > 0 && wanted.length < 20_000 ? new RegExp(wanted).exec(text) : null;
    if (near === null) return { ok: false, problem: 'oldText was not found; it must match the file exactly' };
    const line = lineAt(text, near.index);
    const problem = `oldText was not found, but line ${line} has a text that differs only in white space`;
    return { ok: false, problem };
  }
  if (starts.length > 1 && !all) {
    const named = starts.slice(0, MOST_NAMED_LINES).map((start) => lineAt(text, start));
    const lines = `${named.join(', ')}${starts.length > named.length ? ', …' : ''}`;
    const problem = `oldText occurs ${starts.length} times (lines ${lines}); include more of the surrounding text, or set all: true`;
    return { ok: false, problem };
  }
  return { ok: true, places: starts.map((start) => ({ start, end: start + oldText.length, text: newText })) };
}

function lineAt(text: string, index: number): number {
  let line = 1;
  for (let at = text.indexOf('\n'); at >= 0 && at < index; at = text.indexOf('\n', at + 1)) line += 1;
  return line;
}

/** The changes of a patch in one file. */
interface FilePatch {
  /** The current path; absent if the file is created. */
  readonly from?: string;
  /** The new path; absent if the file is removed. */
  readonly to?: string;
  /** The new text; `false` if the patch does not fit the current text. */
  apply(text: string): string | false;
}

const NOWHERE = '/dev/null';

/**
 * Parses a unified patch of any number of files, as `diff -u` and `git diff` write it.
 *
 * @throws FileSystemError `failed` for an invalid patch.
 */
function readPatch(patch: string): readonly FilePatch[] {
  const unreadable = (problem: string) =>
    new FileSystemError('failed', `The patch cannot be read: ${problem}.`);
  let parsed: ReturnType<typeof parsePatch>;
  try {
    parsed = parsePatch(patch);
  } catch (error) {
    throw unreadable((error as Error).message);
  }
  const files: FilePatch[] = [];
  for (const one of parsed) {
    const { oldFileName, newFileName, hunks, isBinary, isCopy } = one;
    if (oldFileName === undefined || newFileName === undefined) {
      if (hunks.length === 0) continue;
      throw unreadable('it names no file: the lines with --- and +++ are missing');
    }
    if (isBinary || isCopy) throw unreadable('it contains a binary part, or copies a file');
    const hasPrefix =
      one.isGit || (/^a\/|^\/dev\/null$/.test(oldFileName) && /^b\/|^\/dev\/null$/.test(newFileName));
    files.push({
      from: oldFileName === NOWHERE || one.isCreate ? undefined : nameOf(oldFileName, hasPrefix),
      to: newFileName === NOWHERE || one.isDelete ? undefined : nameOf(newFileName, hasPrefix),
      // No fuzz: if the context differs, the file has changed, and guessing a place is unsafe.
      apply: (text) => applyPatch(text, one, { fuzzFactor: 0 }),
    });
  }
  if (files.length === 0) throw unreadable('it contains no changes');
  return files;
}

/** Removes the prefix of `a/src/x.ts`, and what `diff -u` adds after a tab. */
function nameOf(written: string, hasPrefix: boolean | undefined): string {
  const name = written.replace(/\t.*$/, '');
  return hasPrefix ? name.replace(/^[ab]\//, '') : name;
}

/** Time limit for a diff; a rough diff, or none, is better than waiting. */
const MOST_MS = 200;
const MOST_CHARACTERS = 2_000_000;

/** A diff for people; `undefined` if the texts are too large or too different. */
export function differenceOf(path: string, before: string, after: string): string | undefined {
  if (before.length + after.length > MOST_CHARACTERS) return undefined;
  // A shortcut: the diff algorithm is slow for a text that is completely new or removed.
  if (before === '' && after !== '') return wholeText(path, after, '+');
  if (after === '' && before !== '') return wholeText(path, before, '-');
  return createTwoFilesPatch(path, path, before, after, undefined, undefined, {
    context: 3,
    timeout: MOST_MS,
  });
}

/** The diff of a text that is completely new or removed. */
function wholeText(path: string, text: string, sign: '+' | '-'): string {
  const lines = text.replace(/\n$/, '').split('\n');
  const [oldLines, newLines] = sign === '+' ? [0, lines.length] : [lines.length, 0];
  const marked = lines.map((line) => sign + line);
  if (!text.endsWith('\n')) marked.push('\\ No newline at end of file');
  const hunk = { oldStart: 1, oldLines, newStart: 1, newLines, lines: marked };
  const names = { oldFileName: path, newFileName: path, oldHeader: undefined, newHeader: undefined };
  return formatPatch({ ...names, hunks: [hunk] });
}
