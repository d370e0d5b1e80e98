import { type Dirent, readdirSync, readFileSync } from 'node:fs';
import { open, readdir, realpath } from 'node:fs/promises';
import { basename, join, relative, resolve, sep } from 'node:path';
import { parse as parseYaml } from 'yaml';
import type { AuthorFault } from '../../errors/author-fault.js';
import { errorMessage } from '../../kernel/error-message.js';
import { isRecord } from '../../kernel/json.js';

/** A skill, as far as it is known before it is used. */
export interface Skill {
  readonly name: string;
  readonly description: string;
  /** Absolute path of the folder that `SKILL.md` is in. */
  readonly folder: string;
}

/** The skills of a folder, and what is wrong with those that are none. */
export interface FoundSkills {
  readonly skills: readonly Skill[];
  readonly faults: readonly AuthorFault[];
  /** Why it is no folder of skills at all. */
  readonly problem?: string;
}

const FILE = 'SKILL.md';

/** As the format of skills has them: https://agentskills.io/specification. */
const NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
const LONGEST_NAME = 57;
const LONGEST_DESCRIPTION = 1_024;

/** Reads the front matter of every `SKILL.md` in the folders of `folder`, in the order of their names. */
export function findSkills(folder: string): FoundSkills {
  let entries: readonly Dirent[];
  try {
    entries = readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    return { skills: [], faults: [], problem: `folder names ${resolve(folder)}, ${whyNot(error)}` };
  }
  const skills: Skill[] = [];
  const faults: AuthorFault[] = [];
  for (const { name } of entries.filter((entry) => !entry.isFile()).sort(byName)) {
    const read = readSkill(join(folder, name));
    if (read === undefined) continue;
    if ('description' in read) skills.push(read);
    else faults.push(...read.faults);
  }
  return { skills, faults };
}

function whyNot(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT') return 'which is not there';
  return code === 'ENOTDIR' ? 'which is no folder' : `which cannot be read (${code ?? errorMessage(error)})`;
}

function byName(first: Dirent, second: Dirent): number {
  return first.name < second.name ? -1 : 1;
}

/** Nothing where the folder has no `SKILL.md`: not every folder is a skill. */
function readSkill(folder: string): Skill | { readonly faults: readonly AuthorFault[] } | undefined {
  let text: string;
  try {
    text = readFileSync(join(folder, FILE), 'utf8');
  } catch {
    return undefined;
  }
  const where = `${basename(folder)}/${FILE}`;
  const front = frontMatter(text);
  if ('problem' in front) return { faults: [faultOf(where, front.problem, FIX)] };
  const { name, description } = front.values;
  const faults: AuthorFault[] = [];
  if (typeof name !== 'string' || !NAME.test(name) || name.length > LONGEST_NAME)
    faults.push(
      faultOf(where, 'its name is not small letters, digits and single hyphens', 'name: pdf-forms'),
    );
  if (
    typeof description !== 'string' ||
    description.trim() === '' ||
    description.length > LONGEST_DESCRIPTION
  )
    faults.push(
      faultOf(where, 'it has no description of 1 to 1,024 characters', 'description: What it does, and when'),
    );
  if (faults.length > 0) return { faults };
  return { name: name as string, description: (description as string).trim(), folder };
}

const FIX = '---\\nname: pdf-forms\\ndescription: What it does, and when to use it\\n---';

function frontMatter(
  text: string,
): { readonly values: Readonly<Record<string, unknown>> } | { readonly problem: string } {
  const lines = text.replace(/^\uFEFF/, '').split(/\r?\n/);
  const end = lines.indexOf('---', 1);
  if (lines[0]?.trimEnd() !== '---' || end < 0) return { problem: 'it does not begin with front matter' };
  try {
    const values: unknown = parseYaml(lines.slice(1, end).join('\n'));
    return isRecord(values) ? { values } : { problem: 'its front matter is no list of names with values' };
  } catch (error) {
    return { problem: `its front matter is no YAML: ${errorMessage(error).split('\n')[0]}` };
  }
}

function faultOf(where: string, problem: string, fix: string): AuthorFault {
  return { where, problem, fix };
}

/** What a skill says, without its front matter. */
export async function skillText(skill: Skill): Promise<string> {
  const text = await readInside(skill, FILE);
  const lines = text.replace(/^\uFEFF/, '').split(/\r?\n/);
  return lines
    .slice(lines.indexOf('---', 1) + 1)
    .join('\n')
    .trim();
}

const MOST_FILES = 200;

/** Paths of the other files of a skill, relative to its folder, with `/`. */
export async function skillFiles({ folder }: Skill): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .filter((path) => path !== FILE)
    .sort()
    .slice(0, MOST_FILES);
}

const MOST_BYTES = 1_000_000;

/**
 * A text file of a skill.
 *
 * @throws Error that says why it cannot be read; what lies outside the skill's folder, also by a link, is not there.
 */
export async function readInside({ name, folder }: Skill, path: string): Promise<string> {
  const root = await realpath(folder);
  const file = await realpath(join(root, path)).catch(() => undefined);
  if (file === undefined || !file.startsWith(`${root}${sep}`))
    throw new Error(`The skill ${name} has no file ${path}.`);
  await using handle = await open(file);
  const stat = await handle.stat();
  if (!stat.isFile()) throw new Error(`${path} is no file.`);
  if (stat.size > MOST_BYTES)
    throw new Error(`${path} has ${stat.size} bytes, which is more than is read at once.`);
  const bytes = await handle.readFile();
  if (bytes.includes(0)) throw new Error(`${path} is no text: ${stat.size} bytes.`);
  return bytes.toString('utf8');
}
