import { resolve } from 'node:path';
import type { JsonSchema } from '../../contract/json-schema.js';
import type { ToolDefinition } from '../../contract/tool.js';
import { defineTool } from '../../discovery/define-tool.js';
import {
  type AuthorFault,
  checkOptions,
  InvalidOptionsError,
  ToolDeclarationError,
} from '../../errors/author-fault.js';
import { either, FILLED_TEXT, LIST, optionTable, required } from '../../kernel/options.js';
import { findSkills, readInside, type Skill, skillFiles, skillText, skillTouches } from './skill-folder.js';

/** Options of {@link skillTools}. */
export interface SkillToolsOptions {
  /** A folder of skills, or several: each skill is a folder in it with a `SKILL.md`. */
  readonly folder: string | readonly string[];
  /**
   * The folder from which policies are told what is read, as that of the file tools beside it; what lies elsewhere is
   * told from its folder of skills. Default: the working directory.
   */
  readonly root?: string;
}

const OPTIONS = optionTable<SkillToolsOptions>('skillTools', {
  folder: required(either(FILLED_TEXT, LIST)),
  root: FILLED_TEXT,
});

const PARAMETERS: JsonSchema = {
  type: 'object',
  properties: {
    file: {
      type: 'string',
      description: 'One of the skill’s other files, as it names them; without it, the skill itself',
    },
  },
  required: [],
};

/**
 * Skills as tools: a folder with a `SKILL.md` is a tool `skill_<name>`, offered by its description. Its text, and the
 * names of its files, are read when it is used; its files one by one, each told to policies. Nothing is run: a skill with scripts names them,
 * and the model runs them with the shell tools, under their permissions.
 *
 * @throws InvalidOptionsError (521) for folders that are not there, ToolDeclarationError (502) for every `SKILL.md` that
 *   cannot be read; all together.
 *
 * @example
 * ```ts
 * tools.register(...skillTools({ folder: '.skills' }));
 * ```
 */
export function skillTools(options: SkillToolsOptions): ToolDefinition[] {
  checkOptions(options, OPTIONS);
  const { folder, root = process.cwd() } = options;
  const found = (typeof folder === 'string' ? [folder] : folder).map(findSkills);
  const skills = found.flatMap((part) => part.skills);
  const faults = [...found.flatMap((part) => part.faults), ...repeated(skills)];
  const missing = found.flatMap(({ problem }) => (problem === undefined ? [] : [{ ...NO_FOLDER, problem }]));
  if (missing.length > 0)
    throw new InvalidOptionsError([...missing, ...faults.map((fault) => ({ ...fault, option: '' }))]);
  if (faults.length > 0) throw new ToolDeclarationError(faults);
  return skills.map((skill) => toolOf(skill, resolve(root)));
}

const NO_FOLDER = {
  where: 'skillTools',
  option: 'folder',
  fix: 'the path of a folder whose folders have a SKILL.md',
} as const;

function repeated(skills: readonly Skill[]): readonly AuthorFault[] {
  return skills
    .filter(({ name }, index) => skills.findIndex((other) => other.name === name) < index)
    .map(({ name, folder }) => ({
      where: folder,
      problem: `there is another skill '${name}'`,
      fix: 'another name in its front matter',
    }));
}

function toolOf(skill: Skill, root: string): ToolDefinition {
  return defineTool({
    name: `skill_${skill.name.replaceAll('-', '_')}`,
    description: skill.description,
    parameters: PARAMETERS,
    annotations: { title: skill.name, readOnly: true },
    touches: ({ file }) => skillTouches(skill, file === undefined ? undefined : String(file), root),
    execute: ({ file }) => (file === undefined ? describeSkill(skill) : readInside(skill, String(file))),
  });
}

async function describeSkill(skill: Skill): Promise<string> {
  const [text, files] = await Promise.all([skillText(skill), skillFiles(skill)]);
  if (files.length === 0) return text;
  const names = files.map((file) => `- ${file}`).join('\n');
  return `${text}\n\nFiles of this skill, in ${skill.folder}:\n${names}`;
}
