"""SubGNN as the paper writes it: loops over components and anchors, every message built."""

from __future__ import annotations

import torch
from torch import Tensor

from subgnn.channels.channel import NodeAnchors, PatchAnchors
from subgnn.models.subgnn import SubGNN
from subgnn.prepare.measure import Prepared


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
    total = model.encoder.project.weight.new_zeros(model.encoder.project.in_features)
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


def component_output(
    model: SubGNN, prepared: Prepared, c: int, vector, known: dict | None, moments: dict | None = None
) -> tuple[Tensor, dict]:
    """z_c of one component, and every g, h and z on the way.

    moments: mean and variance by which the states of a layer and channel are normalised; where there are none, they
    stay as they are.
    """
    settings = model.settings
    z0 = reduce([vector(u) for u in prepared.components.nodes[c]], settings.component_init)
    row = (known or {}).get(frozenset(prepared.components.nodes[c].tolist()))
    free = z0 if row is None else model.component_states[row]
    by_layer, trace = [], {}
    h = {channel.name: free if channel.kind == "neighborhood" else z0 for channel in model.channels}
    for layer in range(prepared.frame.layers):
        layer_outputs = []
        for i, channel in enumerate(model.channels):
            subchannel, seen = model.layers[layer][i], prepared.inputs[layer][i]
            messages = []
            for a in range(channel.num_anchors):
                shared = prepared.frame.shared[layer][i]
                if isinstance(shared, NodeAnchors):
                    anchor = vector(shared.nodes[a])
                elif isinstance(shared, PatchAnchors):
                    anchor = encode_patch(model, prepared, shared, a, vector)
                else:
                    present = bool(seen.own.present[c])
                    anchor = vector(seen.own.nodes[c, a]) if present else torch.zeros_like(z0)
                messages.append(float(seen.similarity[c, a]) * anchor)
            channel_outputs = []
            g = sum(messages)
            key = (layer, channel.name)
            if subchannel.update is not None:
                h[channel.name] = torch.relu(subchannel.update.weight @ torch.cat([g, h[channel.name]]))
                if key in (moments or {}):
                    mean, variance = moments[key]
                    scaled = (h[channel.name] - mean) / torch.sqrt(variance + subchannel.norm.eps)
                    h[channel.name] = scaled * subchannel.norm.weight + subchannel.norm.bias
                trace[key] = {"g": g, "h": h[channel.name]}
                channel_outputs.append(h[channel.name])
            if subchannel.score is not None:
                q, b = subchannel.score.weight[0], subchannel.score.bias[0]
                z = torch.stack([torch.relu(q @ m + b) for m in messages])
                trace.setdefault(key, {})["z"] = z
                channel_outputs.append(z)
            layer_outputs.append(torch.cat(channel_outputs))
        by_layer += layer_outputs
    z = torch.cat(by_layer)
    return torch.cat([z0, z]) if settings.initial else z, trace


def state_moments(model: SubGNN, prepared: Prepared, vector, known: dict | None) -> dict:
    """What states are normalised by: in training those of all components, layer by layer; else those that were kept."""
    moments: dict = {}
    for layer in range(prepared.frame.layers if model.settings.hidden_norm == "batch" else 0):
        traces = [
            component_output(model, prepared, c, vector, known, moments)[1]
            for c in range(len(prepared.components.nodes))
        ]
        for i, channel in enumerate(model.channels):
            norm, key = model.layers[layer][i].norm, (layer, channel.name)
            if norm is not None and model.training:
                states = torch.stack([trace[key]["h"] for trace in traces])
                mean = states.sum(0) / len(states)
                moments[key] = mean, ((states - mean) ** 2).sum(0) / len(states)
            elif norm is not None:
                moments[key] = norm.running_mean, norm.running_var
    return moments


def forward(model: SubGNN, prepared: Prepared, table_nodes, *, known: dict | None = None, stats=None) -> Tensor:
    """Logits of all subgraphs.

    known: for node sets with a learned initial state, its row. stats: of components and of subgraphs.
    """
    place = {int(node): i for i, node in enumerate(table_nodes)}

    def vector(node) -> Tensor:
        i = place[int(node)]
        if model.features is None:
            return model.table[i]
        mapped = model.feature_map.weight @ model.features[i]
        return model.table[i] + mapped if model.table is not None else mapped + model.feature_map.bias

    moments = state_moments(model, prepared, vector, known)
    rows = []
    for s in range(len(prepared.components.counts)):
        members = [c for c in range(len(prepared.components.nodes)) if prepared.components.subgraph[c] == s]
        z = [component_output(model, prepared, c, vector, known, moments)[0] for c in members]
        if stats is not None:
            z = [torch.cat([v, torch.from_numpy(stats[0][c])]) for c, v in zip(members, z, strict=True)]
        rows.append(reduce(z, model.settings.readout))
        if stats is not None:
            rows[-1] = torch.cat([rows[-1], torch.from_numpy(stats[1][s])])
    return torch.stack([model.head(model.norm(row)) for row in rows])
