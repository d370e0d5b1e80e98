import { ValidationPipe } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { chooseModel } from './model.js';

const app = await NestFactory.create(AppModule.with({ ...(await chooseModel()), path: 'runs.sqlite' }));
app.useGlobalPipes(new ValidationPipe({ whitelist: true, transform: true }));
app.enableShutdownHooks();
const port = Number(process.env.PORT ?? 3000);
await app.listen(port, '127.0.0.1');
console.log(`http://127.0.0.1:${port}`);
