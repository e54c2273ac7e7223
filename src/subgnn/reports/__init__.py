"""Pages, charts and pictures, drawn by templates."""
