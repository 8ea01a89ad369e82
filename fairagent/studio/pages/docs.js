// FastAPI's page of the API sends the token of this tab, too.

/* global ui */
import { held } from "./token.js";

ui.getConfigs().requestInterceptor = async (request) => {
  const token = await held();
  if (token) request.headers.authorization = `Bearer ${token}`;
  return request;
};
