"""SubGNN as the paper writes it: loops over components and anchors, every message built."""

from __future__ import annotations

import torch
from torch import Tensor

from subgnn.anchors import NodeAnchors, PatchAnchors
from subgnn.nn import SubGNN
from subgnn.prepare import Prepared


def lstm_states(lstm: torch.nn.LSTM, sequence: Tensor) -> Tensor:
    """Hidden states of a bidirectional LSTM for one sequence, step by step; (length, 2 d)."""
    states = sequence
    for layer in range(lstm.num_layers):
        directions = []
        for suffix in ("", "_reverse"):
            w_in, w_h, b_in, b_h = (
                getattr(lstm, f"{name}_l{layer}{suffix}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            )
            h = c = states.new_zeros(lstm.hidden_size)
            outputs = []
            for x in states if suffix == "" else states.flip(0):
                i, f, g, o = (w_in @ x + b_in + w_h @ h + b_h).chunk(4)
                c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
                h = torch.sigmoid(o) * torch.tanh(c)
                outputs.append(h)
            directions.append(torch.stack(outputs if suffix == "" else outputs[::-1]))
        states = torch.cat(directions, dim=1)
    return states


def encode_patch(model: SubGNN, prepared: Prepared, anchors: PatchAnchors, patch: int, vector) -> Tensor:
    walks = len(anchors.walks) // len(anchors.patches)
    total = model.table.new_zeros(2 * model.table.shape[1])
    for w in range(walks):
        walk = anchors.walks[patch * walks + w]
        if len(walk):
            states = lstm_states(model.encoder.lstm, torch.stack([vector(u) for u in walk]))
            for step in states:
                total = total + step
    return model.encoder.project.weight @ total + model.encoder.project.bias


def reduce(vectors: list[Tensor], how: str) -> Tensor:
    stacked = torch.stack(vectors)
    return {"sum": stacked.sum(0), "mean": stacked.mean(0), "max": stacked.max(0).values}[how]


def component_output(model: SubGNN, prepared: Prepared, c: int, vector) -> tuple[Tensor, dict]:
    """z_c of one component, and every g, h and z on the way."""
    settings = model.settings
    z0 = reduce([vector(u) for u in prepared.components.nodes[c]], settings.component_init)
    outputs, trace = [z0], {}
    h = {channel.name: z0 for channel in model.channels}
    for layer in range(prepared.layers):
        layer_outputs = []
        for i, channel in enumerate(model.channels):
            subchannel, seen = model.layers[layer][i], prepared.inputs[layer][i]
            messages = []
            for a in range(channel.num_anchors):
                shared = prepared.shared[layer][i]
                if isinstance(shared, NodeAnchors):
                    anchor = vector(shared.nodes[a])
                elif isinstance(shared, PatchAnchors):
                    anchor = encode_patch(model, prepared, shared, a, vector)
                else:
                    present = bool(seen.own.present[c])
                    anchor = vector(seen.own.nodes[c, a]) if present else torch.zeros_like(z0)
                distance, reached = (
                    torch.tensor(float(x[c, a]), dtype=z0.dtype)
                    for x in (seen.nearness.distance, seen.nearness.reached)
                )
                messages.append(reached / (1 + distance) * anchor)
            g = reduce(messages, settings.aggregation)
            key = (layer, channel.name)
            if subchannel.update is not None:
                h[channel.name] = torch.relu(subchannel.update.weight @ torch.cat([g, h[channel.name]]))
                trace[key] = {"g": g, "h": h[channel.name]}
                layer_outputs.append(h[channel.name])
            if subchannel.score is not None:
                q, b = subchannel.score.weight[0], subchannel.score.bias[0]
                z = torch.stack([torch.relu(q @ m + b) for m in messages])
                trace.setdefault(key, {})["z"] = z
                layer_outputs.append(z)
        outputs = (outputs[:1] if settings.layer_aggregation == "last" else outputs) + layer_outputs
    return torch.cat(outputs if settings.initial else outputs[1:]), trace


def forward(model: SubGNN, prepared: Prepared, table_nodes) -> Tensor:
    """Logits of all subgraphs."""
    place = {int(node): i for i, node in enumerate(table_nodes)}

    def vector(node) -> Tensor:
        return model.table[place[int(node)]]

    rows = []
    for s in range(len(prepared.components.counts)):
        members = [c for c in range(len(prepared.components.nodes)) if prepared.components.subgraph[c] == s]
        z = [component_output(model, prepared, c, vector)[0] for c in members]
        if model.settings.readout == "attention":
            scores = torch.cat([model.readout.attend(v) for v in z])
            rows.append(sum(w * v for w, v in zip(torch.softmax(scores, 0), z, strict=True)))
        else:
            rows.append(reduce(z, model.settings.readout))
        if model.settings.size_aware:
            nodes = sum(len(prepared.components.nodes[c]) for c in members)
            sizes = torch.log(torch.tensor([len(members), nodes], dtype=rows[-1].dtype))
            rows[-1] = torch.cat([rows[-1], sizes])
    return torch.stack([model.head(model.norm(row)) for row in rows])
