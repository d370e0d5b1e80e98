import { mkdirSync } from 'node:fs';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app-module.js';
import { chooseModel } from './choose-model.js';

const { PORT = '3000', CHAT_DATA: dataFolder } = process.env;
if (dataFolder !== undefined) mkdirSync(dataFolder, { recursive: true });
const app = await NestFactory.create(AppModule.with({ ...(await chooseModel(process.env)), dataFolder }));
app.enableShutdownHooks();
await app.listen(Number(PORT), '127.0.0.1');
process.stdout.write(`The chat is open at ${await app.getUrl()}\n`);
