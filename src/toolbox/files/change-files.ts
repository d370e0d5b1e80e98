import { ToolResult } from '../../contract/tool-result.js';
import { differenceOf, type Edited, type FilePatch, readPatch } from './edit-text.js';
import { alreadyThere, type FileBytes, type FileSystem, FileSystemError, missing } from './file-system.js';
import { contentOf, encodeText, versionOf } from './read-file.js';

/** A file that is to be changed. */
interface FileChange {
  readonly path: string;
  /** What the model has read. */
  readonly version: string | undefined;
  /** All of it is replaced, and it may be new. */
  readonly isWhole: boolean;
  readonly limits: { readonly fileBytes: number };
}

/** A file as it is, for a change of its text. */
interface OpenText {
  readonly text: string;
  readonly bytes: Uint8Array;
  readonly stamp: string;
}

/** The new text of a file, or why there is none. */
type Change = (text: string) => { readonly ok: true; readonly text: string } | Extract<Edited, { ok: false }>;

/** A change that could be made, and on what condition. */
interface PlannedChange {
  readonly path: string;
  readonly there?: FileBytes;
  readonly before: string;
  readonly after: string;
  readonly bytes: Uint8Array;
}

/** Changes one file by its text; what it was and is goes to the application as a difference. */
export async function changeFile(files: FileSystem, wanted: FileChange, change: Change): Promise<ToolResult> {
  const { path, there, before, after, bytes } = await planChange(files, wanted, change);
  await files.write(path, bytes, { replaces: there === undefined ? 'absent' : { stamp: there.stamp } });
  const verb = there === undefined ? 'made' : 'changed';
  return resultOf([{ path, before, after, verb, version: versionOf(bytes) }]);
}

/** The difference that a change would make, for whoever is asked; or why it would not be made. */
export function previewChange(files: FileSystem, wanted: FileChange, change: Change): Promise<string> {
  return previewOf(async () => [await planChange(files, wanted, change)]);
}

/** The differences that a patch would make. */
export function previewPatch(
  files: FileSystem,
  patch: string,
  limits: FileChange['limits'],
): Promise<string> {
  return previewOf(async () => {
    const planned = await planPatches(files, patch, limits.fileBytes);
    return planned.map(({ from, to, there, after }) => ({
      path: to ?? from ?? '',
      before: there?.text ?? '',
      after: to === undefined ? '' : after,
    }));
  });
}

async function previewOf(
  plan: () => Promise<readonly Pick<ChangedFile, 'path' | 'before' | 'after'>[]>,
): Promise<string> {
  try {
    const files = await plan();
    return files
      .map(
        ({ path, before, after }) =>
          differenceOf(path, before, after) ??
          `${path}: from ${before.length} to ${after.length} characters; the difference is too large to be shown`,
      )
      .join('\n');
  } catch (error) {
    if (error instanceof FileSystemError) return `It would fail: ${error.message}`;
    throw error;
  }
}

/** Nothing is written: what is wrong is found out before. */
async function planChange(files: FileSystem, wanted: FileChange, change: Change): Promise<PlannedChange> {
  const { version, isWhole, limits } = wanted;
  const path = files.pathOf(wanted.path);
  const there = await bytesAt(files, path, limits.fileBytes);
  if (there === undefined) {
    if (!isWhole) throw missing(path);
    if (version !== undefined)
      throw new FileSystemError(
        'changed',
        `There is no '${path}' any more; without a version it is made anew.`,
      );
  } else if (isWhole && version === undefined)
    throw new FileSystemError(
      'exists',
      `There is a '${path}' already. Read it, and give its version to replace it; or edit it.`,
    );
  const now = there && versionOf(there.bytes);
  if (version !== undefined && version !== now)
    throw new FileSystemError(
      'changed',
      `'${path}' has changed since it was read: its version is ${now}, not ${version}. Read it again.`,
    );
  const before = there === undefined ? undefined : openText(path, there, isWhole);
  const changed = change(before?.text ?? '');
  if (!changed.ok)
    throw new FileSystemError(
      'failed',
      `'${path}' was not changed:\n${changed.problems.map((one) => `- ${one}`).join('\n')}`,
    );
  const bytes = bytesOf(path, changed.text);
  return { path, there, before: before?.text ?? '', after: changed.text, bytes };
}

async function bytesAt(files: FileSystem, path: string, most: number): Promise<FileBytes | undefined> {
  const info = await files.info(path);
  if (info === undefined) return undefined;
  if (info.kind === 'file' && info.size > most)
    throw new FileSystemError(
      'failed',
      `'${path}' is too large to be changed: ${info.size} bytes, at most ${most}.`,
    );
  return files.read(path);
}

/** Half a character has no bytes: in its place would be something that nobody wrote. */
function bytesOf(path: string, text: string): Uint8Array {
  if (text.isWellFormed()) return encodeText(text);
  throw new FileSystemError('failed', `'${path}' was not changed: half of a character would be left in it.`);
}

/** What is replaced as a whole may be anything; what is edited has to be text. */
function openText(path: string, { bytes, stamp }: FileBytes, isWhole: boolean): OpenText {
  const content = contentOf(bytes);
  if (content.kind === 'text') return { text: content.text, bytes, stamp };
  if (isWhole) return { text: '', bytes, stamp };
  const why = content.kind === 'image' ? 'it is an image' : content.why;
  throw new FileSystemError('kind', `'${path}' cannot be edited: ${why}.`);
}

/** One file before and after. */
interface ChangedFile {
  readonly path: string;
  readonly before: string;
  readonly after: string;
  readonly verb: string;
  readonly version?: string;
}

/** The model knows what it did; people are shown the difference. */
function resultOf(files: readonly ChangedFile[]): ToolResult {
  const differences = files.map(({ path, before, after }) => differenceOf(path, before, after));
  const lines = files.map(
    ({ path, verb, version }) => `${path}: ${verb}${version === undefined ? '' : `, version ${version}`}`,
  );
  const shown = differences.filter((difference) => difference !== undefined).join('\n');
  return new ToolResult({
    forLLM: lines.join('\n'),
    ...(shown === '' ? {} : { forUser: shown }),
    details: {
      changes: files.map(({ path, verb }, index) => ({ path, verb, difference: differences[index] })),
    },
  });
}

/** A file of a patch that fits, and what to write. */
interface PlannedPatch {
  readonly from?: string;
  readonly to?: string;
  readonly there?: OpenText;
  readonly after: string;
}

/** Applies a patch: first all of it is tried, then it is written; where writing fails, what was written is put back. */
export async function patchFiles(
  files: FileSystem,
  patch: string,
  limits: { readonly fileBytes: number },
): Promise<ToolResult> {
  const planned = await planPatches(files, patch, limits.fileBytes);
  await writeAll(files, planned);
  return resultOf(
    planned.map(({ from, to, there, after }) => ({
      path: to ?? from ?? '',
      before: there?.text ?? '',
      after: to === undefined ? '' : after,
      verb: verbOf(from, to),
      version: to === undefined ? undefined : versionOf(encodeText(after)),
    })),
  );
}

async function planPatches(files: FileSystem, patch: string, most: number): Promise<readonly PlannedPatch[]> {
  const read = readPatch(patch);
  if (!read.ok) throw new FileSystemError('failed', `The patch cannot be read: ${read.problem}.`);
  const planned: PlannedPatch[] = [];
  const problems: string[] = [];
  const used = new Set<string>();
  for (const file of read.files) {
    try {
      const one = await planPatch(files, file, most);
      for (const path of new Set([one.from, one.to])) {
        if (path === undefined) continue;
        if (used.has(path)) throw new FileSystemError('failed', `'${path}' is in the patch twice.`);
        used.add(path);
      }
      planned.push(one);
    } catch (error) {
      if (!(error instanceof FileSystemError)) throw error;
      problems.push(`- ${error.message}`);
    }
  }
  if (problems.length > 0)
    throw new FileSystemError('failed', `Nothing was patched:\n${problems.join('\n')}`);
  return planned;
}

function verbOf(from: string | undefined, to: string | undefined): string {
  if (from === undefined) return 'made';
  if (to === undefined) return 'removed';
  return from === to ? 'changed' : `moved from ${from}`;
}

async function planPatch(files: FileSystem, patch: FilePatch, most: number): Promise<PlannedPatch> {
  const from = patch.from === undefined ? undefined : files.pathOf(patch.from);
  const to = patch.to === undefined ? undefined : files.pathOf(patch.to);
  if (to !== undefined && to !== from && (await files.info(to)) !== undefined) throw alreadyThere(to);
  const bytes = from === undefined ? undefined : await bytesAt(files, from, most);
  if (from !== undefined && bytes === undefined) throw missing(from);
  const there = from === undefined || bytes === undefined ? undefined : openText(from, bytes, false);
  const after = patch.apply(there?.text ?? '');
  if (after === undefined)
    throw new FileSystemError('failed', `'${from ?? to}' is not as the patch has it. Read it again.`);
  if (to === undefined && after !== '')
    throw new FileSystemError('failed', `'${from}' has more in it than the patch removes.`);
  return { from, to, there, after };
}

/** Each write on the condition that the file is still what the patch was tried on. */
async function writeAll(files: FileSystem, planned: readonly PlannedPatch[]): Promise<void> {
  const undo: (() => Promise<unknown>)[] = [];
  try {
    for (const { from, to, there, after } of planned) {
      if (to !== undefined) {
        const isNew = from !== to || there === undefined;
        const written = await files.write(to, encodeText(after), {
          replaces: isNew ? 'absent' : { stamp: there.stamp },
        });
        undo.push(() =>
          isNew ? files.remove(to) : files.write(to, there.bytes, { replaces: { stamp: written.stamp } }),
        );
      }
      if (from !== undefined && from !== to && there !== undefined) {
        await files.remove(from);
        undo.push(() => files.write(from, there.bytes, { replaces: 'absent' }));
      }
    }
  } catch (error) {
    const failed: string[] = [];
    for (const back of undo.reverse()) await back().catch((cause: Error) => failed.push(cause.message));
    const rest =
      failed.length === 0 ? 'Everything was put back.' : `Not all was put back: ${failed.join(' ')}`;
    throw new FileSystemError('failed', `The patch was not applied: ${(error as Error).message} ${rest}`, {
      cause: error,
    });
  }
}
