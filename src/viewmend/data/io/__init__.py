"""Read views and labels from files.

Every format is read into tables (`viewmend.data.io.contents`). What follows is the same for all
(`viewmend.data.io.loading`): labels are looked up, categories encoded, empty
cells filled, and the views joined by the identifiers of their rows.
"""
