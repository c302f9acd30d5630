"""The same at Azure: an address of one's own, a key in a header of its own, and names of deployments."""

from __future__ import annotations

from urllib.parse import quote, urlsplit

from garra.builtin.apis.openai_responses.api import OpenAIResponses
from garra.sdk.cloud import address, told
from garra.sdk.model import Model

VERSION = "v1"


class AzureOpenAIResponses(OpenAIResponses):
    """`sdk.model.Api` for `/openai/v1/responses` of an Azure resource."""

    family = "azure-openai-responses"

    def url(self, model: Model) -> str:
        usual = "{" in model.base_url  # the box's, which the owner's variable overrules
        base = (usual and self.cloud.setting("AZURE_OPENAI_BASE_URL").rstrip("/")) or address(model, self.cloud)
        if urlsplit(base).path in ("", "/", "/openai"):
            base = base.removesuffix("/openai") + "/openai/v1"
        version = told(model, self.cloud, "azureApiVersion", "AZURE_OPENAI_API_VERSION") or VERSION
        return f"{base}/responses?api-version={quote(version, safe='')}"

    def signed(self, key: str | None) -> dict[str, str]:
        return {"api-key": key} if key else {}

    def called(self, model: Model) -> str:
        own = told(model, self.cloud, "azureDeploymentName")
        pairs = (pair.partition("=") for pair in self.cloud.setting("AZURE_OPENAI_DEPLOYMENT_NAME_MAP").split(","))
        return own or {name.strip(): value.strip() for name, _, value in pairs}.get(model.id, "") or model.id
