import { Logger, ValidationPipe } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { chooseModel } from './model.js';

const app = await NestFactory.create(AppModule.with({ ...(await chooseModel()), path: 'runs.sqlite' }));
app.useGlobalPipes(new ValidationPipe({ whitelist: true, transform: true }));
app.enableShutdownHooks();
const port = Number(process.env.PORT || 3000);
try {
  await app.listen(port, '127.0.0.1');
  Logger.log(`http://127.0.0.1:${port}`, 'Main');
} catch (error) {
  if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
  Logger.error(`Port ${port} is taken. Choose another, for example PORT=${port + 1}.`, 'Main');
  process.exitCode = 1;
  await app.close();
}
