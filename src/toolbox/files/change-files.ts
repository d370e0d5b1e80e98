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

/** The new text of a file, or why there is none. */
type Change = (text: string) => { readonly ok: true; readonly text: string } | Extract<Edited, { ok: false }>;

/** A file as it is; without a text if it is not text and is replaced as a whole. */
type OpenFile = FileBytes & { readonly text: string };

/** A file before and after a change: `from` is `undefined` if it is made, `to` if it is removed. */
interface PlannedFile {
  readonly from?: string;
  readonly to?: string;
  readonly there?: OpenFile;
  readonly after: string;
}

/** Changes one file by its text; the application gets the difference. */
export async function changeFile(files: FileSystem, wanted: FileChange, change: Change): Promise<ToolResult> {
  const planned = await planChange(files, wanted, change);
  const { to, there, after } = planned;
  const replaces = there === undefined ? 'absent' : { stamp: there.stamp };
  await files.write(to, encodeText(after), { replaces });
  return resultOf([planned]);
}

/** Applies a patch: first all of it is tried, then it is written; if writing fails, what was written is put back. */
export async function patchFiles(
  files: FileSystem,
  patch: string,
  limits: FileChange['limits'],
): Promise<ToolResult> {
  const planned = await planPatches(files, patch, limits.fileBytes);
  await writeAll(files, planned);
  return resultOf(planned);
}

/** The difference that a change would make, for whoever is asked; or why it would not be made. */
export function previewChange(files: FileSystem, wanted: FileChange, change: Change): Promise<string> {
  return preview(async () => [await planChange(files, wanted, change)]);
}

/** The differences that a patch would make, or why it would not be applied. */
export function previewPatch(
  files: FileSystem,
  patch: string,
  limits: FileChange['limits'],
): Promise<string> {
  return preview(() => planPatches(files, patch, limits.fileBytes));
}

async function preview(plan: () => Promise<readonly PlannedFile[]>): Promise<string> {
  try {
    const shown = (await plan()).map((planned) => {
      const { to, from, there, after } = planned;
      const sizes = `from ${there?.text.length ?? 0} to ${after.length} characters`;
      return differenceIn(planned) ?? `${to ?? from}: ${sizes}; the difference is too large to be shown`;
    });
    return shown.join('\n');
  } catch (error) {
    if (error instanceof FileSystemError) return `It would fail: ${error.message}`;
    throw error;
  }
}

function differenceIn({ from, to, there, after }: PlannedFile): string | undefined {
  return differenceOf(to ?? from ?? '', there?.text ?? '', after);
}

/** The model knows what it did; people are shown the difference. */
function resultOf(files: readonly PlannedFile[]): ToolResult {
  const changes = files.map((planned) => {
    const { from, to } = planned;
    const path = to ?? from ?? '';
    return { path, verb: verbOf(from, to), difference: differenceIn(planned) };
  });
  const lines = files.map(({ to, after }, index) => {
    const version = to === undefined ? '' : `, version ${versionOf(encodeText(after))}`;
    return `${changes[index]?.path}: ${changes[index]?.verb}${version}`;
  });
  const shown = changes.flatMap(({ difference }) => difference ?? []).join('\n');
  return new ToolResult({
    forLLM: lines.join('\n'),
    ...(shown === '' ? {} : { forUser: shown }),
    details: { changes },
  });
}

function verbOf(from: string | undefined, to: string | undefined): string {
  if (from === undefined) return 'made';
  if (to === undefined) return 'removed';
  return from === to ? 'changed' : `moved from ${from}`;
}

/** Nothing is written: what is wrong is found out before. */
async function planChange(
  files: FileSystem,
  { path: given, version, isWhole, limits }: FileChange,
  change: Change,
): Promise<PlannedFile & { readonly to: string }> {
  const path = files.pathOf(given);
  const there = await openFile(files, path, { most: limits.fileBytes, isWhole });
  const now = there && versionOf(there.bytes);
  if (there === undefined && !isWhole) throw missing(path);
  if (there === undefined && version !== undefined)
    throw new FileSystemError(
      'changed',
      `There is no '${path}' any more; without a version it is made anew.`,
    );
  if (there !== undefined && isWhole && version === undefined)
    throw new FileSystemError(
      'exists',
      `There is a '${path}' already. Read it, and give its version to replace it; or edit it.`,
    );
  if (version !== undefined && version !== now)
    throw new FileSystemError(
      'changed',
      `'${path}' has changed since it was read: its version is ${now}, not ${version}. Read it again.`,
    );
  const changed = change(there?.text ?? '');
  const refused = (why: string) => new FileSystemError('failed', `'${path}' was not changed:${why}`);
  if (!changed.ok) throw refused(`\n${changed.problems.map((one) => `- ${one}`).join('\n')}`);
  // Half a character has no bytes: something that nobody wrote would be in its place.
  if (!changed.text.isWellFormed()) throw refused(' half of a character would be left in it.');
  return { to: path, after: changed.text, ...(there && { from: path, there }) };
}

/** What is replaced as a whole may be anything; what is edited has to be text. */
async function openFile(
  files: FileSystem,
  path: string,
  { most, isWhole }: { readonly most: number; readonly isWhole: boolean },
): Promise<OpenFile | undefined> {
  const info = await files.info(path);
  if (info === undefined) return undefined;
  if (info.kind === 'file' && info.size > most)
    throw new FileSystemError(
      'failed',
      `'${path}' is too large to be changed: ${info.size} bytes, at most ${most}.`,
    );
  const read = await files.read(path);
  const content = contentOf(read.bytes);
  if (content.kind === 'text') return { ...read, text: content.text };
  if (isWhole) return { ...read, text: '' };
  const why = content.kind === 'image' ? 'it is an image' : content.why;
  throw new FileSystemError('kind', `'${path}' cannot be edited: ${why}.`);
}

async function planPatches(files: FileSystem, patch: string, most: number): Promise<readonly PlannedFile[]> {
  const read = readPatch(patch);
  if (!read.ok) throw new FileSystemError('failed', `The patch cannot be read: ${read.problem}.`);
  const planned: PlannedFile[] = [];
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

async function planPatch(files: FileSystem, patch: FilePatch, most: number): Promise<PlannedFile> {
  const from = patch.from === undefined ? undefined : files.pathOf(patch.from);
  const to = patch.to === undefined ? undefined : files.pathOf(patch.to);
  if (to !== undefined && to !== from && (await files.info(to)) !== undefined) throw alreadyThere(to);
  const there = from === undefined ? undefined : await openFile(files, from, { most, isWhole: false });
  if (from !== undefined && there === undefined) throw missing(from);
  const after = patch.apply(there?.text ?? '');
  if (after === undefined)
    throw new FileSystemError('failed', `'${from ?? to}' is not as the patch has it. Read it again.`);
  if (to === undefined && after !== '')
    throw new FileSystemError('failed', `'${from}' has more in it than the patch removes.`);
  return { from, to, there, after };
}

/** Each write on the condition that the file is still what the patch was tried on. */
async function writeAll(files: FileSystem, planned: readonly PlannedFile[]): Promise<void> {
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
