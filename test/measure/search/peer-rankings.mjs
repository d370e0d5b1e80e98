/*
 * The rankings of other packages, reimplemented for comparison: `toolSearch()` of AI SDK 7 (two points for a query word
 * in the name, one in the description) and `ToolSearchProcessor` of Mastra (BM25 over both, then points for names that
 * contain a query word, for all tools as with a filter). Each returns ten names; the packages return five.
 */

const COUNT = 10;

export function aiSdkRanking(tools) {
  const documents = tools.map(({ name, description = '' }) => ({
    name,
    inName: new Set(camelWords(name)),
    inDescription: new Set(camelWords(description)),
  }));
  return (query) => {
    const words = new Set(camelWords(query));
    const scored = documents.map(({ name, inName, inDescription }) => {
      let score = 0;
      for (const word of words) score += (inName.has(word) ? 2 : 0) + (inDescription.has(word) ? 1 : 0);
      return { name, score };
    });
    return best(scored, COUNT);
  };
}

function camelWords(text) {
  const apart = text.replace(/([a-z\d])([A-Z])/g, '$1 $2').toLowerCase();
  return apart.match(/[\p{L}\p{N}]+/gu) ?? [];
}

const SEPARATORS = /[\s\-_.,;:!?()[\]{}'"]+/;
const BM25 = { k1: 1.5, b: 0.75 };

export function mastraRanking(tools) {
  const documents = tools.map(({ name, description = '' }) => ({
    name,
    words: plainWords(`${name} ${description}`),
  }));
  const average = documents.reduce((sum, { words }) => sum + words.length, 0) / documents.length;
  const postings = new Map();
  documents.forEach(({ words }, place) => {
    for (const word of words) {
      const counts = postings.get(word) ?? new Map();
      postings.set(word, counts.set(place, (counts.get(place) ?? 0) + 1));
    }
  });
  return (query) => {
    const words = plainWords(query);
    const scores = new Map();
    for (const word of words) {
      const counts = postings.get(word) ?? new Map();
      const rarity = Math.log((documents.length - counts.size + 0.5) / (counts.size + 0.5) + 1);
      for (const [place, count] of counts) {
        const length = BM25.k1 * (1 - BM25.b + (BM25.b * documents[place].words.length) / average);
        const score = rarity * ((count * (BM25.k1 + 1)) / (count + length));
        scores.set(place, (scores.get(place) ?? 0) + score);
      }
    }
    const all = Array.from(scores, ([place, score]) => ({ name: documents[place].name, score }));
    return best(
      all.map(({ name, score }) => {
        const plain = name.toLowerCase();
        const bonus = words.reduce(
          (sum, word) => sum + (plain === word ? 5 : plain.includes(word) ? 2 : 0),
          0,
        );
        return { name, score: score + bonus };
      }),
      COUNT,
    );
  };
}

function plainWords(text) {
  return text
    .toLowerCase()
    .split(SEPARATORS)
    .filter((word) => word.length >= 2);
}

function best(scored, count) {
  return scored
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, count)
    .map(({ name }) => name);
}
