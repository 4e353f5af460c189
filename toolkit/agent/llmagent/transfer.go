package llmagent

// TransferTool is the tool with which an agent hands the run over to another one. Agents do not list it: it is offered to
// those that have somebody to hand over to.
const TransferTool = "transfer_to_agent"
