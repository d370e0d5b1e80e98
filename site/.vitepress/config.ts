import { readFileSync, writeFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { type DefaultTheme, defineConfig } from 'vitepress';

const REPOSITORY = 'https://github.com/toolwright/toolwright';
const DOCS = join(import.meta.dirname, '../../docs');

export default defineConfig({
  title: 'toolwright',
  description: 'Tools for language models from TypeScript functions and methods',
  lang: 'en',
  srcDir: '../docs',
  outDir: 'dist',
  cleanUrls: true,
  // The API reference is generated after the pages.
  ignoreDeadLinks: [/^\/api\//],
  // The pages are outside of this folder, and Vue is installed here.
  vite: { resolve: { alias: { vue: join(import.meta.dirname, '../node_modules/vue') } } },
  themeConfig: {
    search: { provider: 'local' },
    nav: [
      { text: 'Start', link: '/start/quick-start' },
      { text: 'Guides', link: '/' },
      { text: 'Reference', link: '/reference/entry-points' },
      { text: 'API', link: '/api/index.html', target: '_self' },
    ],
    sidebar: sidebarOf(readFileSync(join(DOCS, 'index.md'), 'utf8')),
    socialLinks: [{ icon: 'github', link: REPOSITORY }],
    outline: [2, 3],
  },
  markdown: {
    config: (markdown) => {
      // Links that leave `docs` open the file in the repository.
      markdown.core.ruler.push('repository-links', ({ tokens, env }) => {
        for (const token of tokens.flatMap(({ children }) => children ?? [])) {
          const href = token.attrGet('href');
          if (href?.startsWith('.') !== true) continue;
          const target = posix.join('docs', posix.dirname(env.relativePath), href);
          if (!target.startsWith('docs/')) token.attrSet('href', `${REPOSITORY}/blob/main/${target}`);
        }
      });
    },
  },
  /** For agents: each page as Markdown beside its HTML, and a list of all in `llms.txt`. */
  buildEnd({ outDir, pages }) {
    const lines = pages.toSorted().map((page) => {
      const text = readFileSync(join(DOCS, page), 'utf8');
      writeFileSync(join(outDir, page), text);
      return `- [${titleOf(text)}](/${page}): ${firstSentence(text)}`;
    });
    writeFileSync(join(outDir, 'llms.txt'), `# toolwright\n\n${lines.join('\n')}\n`);
  },
});

/** The navigation from `docs/index.md`, which lists every page once. */
function sidebarOf(index: string): DefaultTheme.SidebarItem[] {
  return index
    .split(/^## /m)
    .slice(1)
    .map((section) => ({
      text: section.split('\n', 1)[0],
      collapsed: false,
      items: [...section.matchAll(/^- \[(.+?)\]\((.+?)\.md\)/gm)].map(([, text, link]) => ({
        text,
        link: `/${link}`,
      })),
    }));
}

function titleOf(text: string): string {
  return /^# (.+)$/m.exec(text)?.[1]?.replaceAll('`', '') ?? 'toolwright';
}

/** The first sentence of its first paragraph, without links. */
function firstSentence(text: string): string {
  const [sentence = ''] = /^[\w`].*?[.?](?= |$)/m.exec(text) ?? [];
  return sentence.replaceAll(/\[([^\]]+)\]\([^)]+\)/g, '$1');
}
