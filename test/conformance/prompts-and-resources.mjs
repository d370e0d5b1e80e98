// The prompts and resources that the official suite requires from a server. The suite defines their names and texts.
// Decorators are called as functions, because this file is JavaScript.
import { Completion, Context, Param, Prompt, Resource, ToolResult } from '../../dist/src/index.js';

const RED_DOT =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
const image = { type: 'image', data: RED_DOT, mimeType: 'image/png' };
const user = (content) => ({ role: 'user', content });

export class PromptsAndResources {
  simple() {
    return 'This is a simple prompt for testing.';
  }

  withArguments(arg1, arg2) {
    return `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`;
  }

  withEmbeddedResource(resourceUri) {
    const text = 'Embedded resource content for testing.';
    return {
      messages: [
        user({ type: 'resource', resource: { uri: resourceUri, mimeType: 'text/plain', text } }),
        user('Please process the embedded resource above.'),
      ],
    };
  }

  withImage() {
    return { messages: [user(image), user('Please analyze the image above.')] };
  }

  passing() {
    return 'This prompt is removed while a client listens.';
  }

  async askFirst(context) {
    const schema = {
      type: 'object',
      properties: { context: { type: 'string' } },
      required: ['context'],
    };
    const answer = await context.ask({ message: 'What context should the prompt use?', schema });
    return `Use this context: ${answer.context}`;
  }

  staticText() {
    return 'This is the content of the static text resource.';
  }

  staticBinary() {
    return Buffer.from(RED_DOT, 'base64');
  }

  template(id) {
    return { id, templateTest: true, data: `Data for ID: ${id}` };
  }

  watched() {
    return new ToolResult({ forLLM: 'watched', content: [{ type: 'text', content: 'watched' }] });
  }

  completeArg1(value) {
    return ['paris', 'park', 'party'].filter((word) => word.startsWith(value));
  }
}

const text = (name) => Param({ name, type: () => String, description: `The argument ${name}` });

function decorate(method, decorator, ...parameters) {
  const { prototype } = PromptsAndResources;
  for (const [index, parameter] of parameters.entries()) parameter(prototype, method, index);
  decorator(prototype, method, Object.getOwnPropertyDescriptor(prototype, method));
}

const prompt = (name, description) => Prompt({ name: `test_${name}`, description });
const resource = (path, name, mimeType) =>
  Resource(`test://${path}`, { name, description: `The resource ${name}`, mimeType });

decorate('simple', prompt('simple_prompt', 'A prompt without arguments'));
decorate(
  'withArguments',
  prompt('prompt_with_arguments', 'A prompt with two arguments'),
  text('arg1'),
  text('arg2'),
);
decorate(
  'withEmbeddedResource',
  prompt('prompt_with_embedded_resource', 'A prompt with a resource'),
  text('resourceUri'),
);
decorate('passing', prompt('passing_prompt', 'A prompt that is removed'));
decorate('withImage', prompt('prompt_with_image', 'A prompt with a picture'));
decorate('askFirst', prompt('input_required_result_prompt', 'A prompt that asks the user'), Context());
decorate('staticText', resource('static-text', 'static_text', 'text/plain'));
decorate('staticBinary', resource('static-binary', 'static_binary', 'image/png'));
decorate('template', resource('template/{id}/data', 'template', 'application/json'), text('id'));
decorate('watched', resource('watched-resource', 'watched'));
decorate('completeArg1', Completion('test_prompt_with_arguments', 'arg1'), text('value'));
