import { Controller, Get, Header, NotFoundException, Param } from '@nestjs/common';
import { bundlePage, htmlOf, indexHtml, isPage } from './bundle-page.js';

/** Serves the pages and their scripts. */
@Controller()
export class PagesController {
  @Get()
  @Header('content-type', 'text/html; charset=utf-8')
  index(): string {
    return indexHtml();
  }

  @Get('pages/:name.js')
  @Header('content-type', 'text/javascript; charset=utf-8')
  program(@Param('name') name: string): Promise<string> {
    return bundlePage(known(name));
  }

  @Get(':name')
  @Header('content-type', 'text/html; charset=utf-8')
  page(@Param('name') name: string): string {
    return htmlOf(known(name));
  }
}

function known(name: string): string {
  if (!isPage(name)) throw new NotFoundException(`there is no page ${JSON.stringify(name)}`);
  return name;
}
